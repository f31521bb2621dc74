module github.com/holdfast-go/holdfast/core/zklock

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
)
