// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/core/bench

go 1.26.0

replace (
	github.com/holdfast-go/holdfast => ../..
	github.com/holdfast-go/holdfast/core/internal/weather => ../internal/weather
)

require (
	github.com/bsm/redislock v0.10.0
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.48.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/rueidis/rueidiscompat v1.0.69 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)

// Only redsync's own tests want it, and go mod tidy wants what they want; not every module
// proxy serves this version.
exclude github.com/redis/rueidis/rueidiscompat v1.0.79
