module github.com/holdfast-go/holdfast/taskmw/watermillmw

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/ThreeDotsLabs/watermill v1.3.5
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cenkalti/backoff/v3 v3.2.2 // indirect
	github.com/google/uuid v1.3.1 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/lithammer/shortuuid/v3 v3.0.7 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/sony/gobreaker v0.5.0 // indirect
)
