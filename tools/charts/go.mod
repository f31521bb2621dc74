// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/tools/charts

go 1.26.0
