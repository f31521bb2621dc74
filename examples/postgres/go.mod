// Not released: it is for work on this repository.
module github.com/holdfast-go/holdfast/examples/postgres

go 1.26.0

replace (
	github.com/holdfast-go/holdfast => ../..
	github.com/holdfast-go/holdfast/core/sqllock => ../../core/sqllock
)

require (
	github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000
	github.com/holdfast-go/holdfast/core/sqllock v0.0.0-00010101000000-000000000000
	github.com/jackc/pgx/v5 v5.12.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

// The module proxy does not serve this version. Only tests of modernc.org/sqlite want it.
exclude github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
