module github.com/holdfast-go/holdfast/taskmw/rivermw

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/riverqueue/river/rivertype v0.20.0
	go.uber.org/goleak v1.3.0
)
