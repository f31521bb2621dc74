// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/examples/fencing

go 1.26.0

replace github.com/holdfast-go/holdfast => ../..

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.23.0
	modernc.org/sqlite v1.61.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

// The module proxy does not serve this version. Only tests of modernc.org/sqlite want it.
exclude github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
