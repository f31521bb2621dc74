module github.com/holdfast-go/holdfast/examples

go 1.26.0

replace (
	github.com/holdfast-go/holdfast => ..
	github.com/holdfast-go/holdfast/grpcmw => ../grpcmw
	github.com/holdfast-go/holdfast/taskmw => ../taskmw
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/hibiken/asynq v0.26.0
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/grpcmw v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/taskmw v0.0.0-00010101000000-000000000000
	github.com/labstack/echo/v4 v4.13.2
	github.com/labstack/echo/v5 v5.0.3
	github.com/redis/go-redis/v9 v9.20.1
	go.uber.org/goleak v1.3.0
	google.golang.org/grpc v1.82.1
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/labstack/gommon v0.4.2 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/crypto v0.51.0 // indirect
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.39.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
)
