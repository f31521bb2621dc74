// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/core/internal/weather

go 1.26.0

replace github.com/holdfast-go/holdfast => ../../..

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	golang.org/x/sys v0.48.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)
