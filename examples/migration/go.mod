// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/examples/migration

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/bsm/redislock v0.9.4
	github.com/caddyserver/certmagic v0.25.6
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/hibiken/asynq v0.26.0
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
)

require github.com/google/uuid v1.6.0 // indirect

require (
	github.com/caddyserver/zerossl v0.1.6 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/holdfast-go/holdfast/taskmw v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/taskmw/cronmw v0.0.0-00010101000000-000000000000
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/libdns/libdns v1.1.1 // indirect
	github.com/mholt/acmez/v3 v3.1.7 // indirect
	github.com/miekg/dns v1.1.73 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.uber.org/zap/exp v0.3.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/holdfast-go/holdfast/taskmw => ../../taskmw

replace github.com/holdfast-go/holdfast/taskmw/cronmw => ../../taskmw/cronmw
