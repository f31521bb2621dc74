// Not released: a tool of this repository.
module github.com/holdfast-go/holdfast/tools/release

go 1.26.0
