module github.com/holdfast-go/holdfast/tools/evidence

go 1.26.0
