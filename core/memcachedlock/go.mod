module github.com/holdfast-go/holdfast/core/memcachedlock

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
)
