#!/usr/bin/env bash
# Runs tests of every adapter and every backend with GODEBUG=fips140=only, in which a program that uses an algorithm
# outside FIPS 140 panics. docs/install.md says what dependencies cannot do there. Every module's packages are
# started; of the backends it takes cases of the suite that lock, renew, release and wait, on real servers.
set -uo pipefail

cd "$(dirname "$0")/.." || exit
rc=0

# fips runs tests of one module: fips module arguments
fips() {
	echo "== $1"
	(cd "$1" && shift && HOLDFAST_REQUIRE_SERVERS=1 GOWORK=off go test -count=1 -timeout=10m -exec 'env GODEBUG=fips140=only' "$@") 2>&1 |
		grep -v 'no test files' || rc=1
	[ "${PIPESTATUS[0]}" -eq 0 ] || rc=1
}

cases='AGrantExcludesOthersUntilItsRelease|RenewalGivesTheFullTTLAgain|OnlyTheOwnerReleases|AWaiterIsGrantedTheNameAtItsRelease'

# Bubbles of synctest are left out: Go's source of randomness measures real time, and panics in them. So is miniredis, which has SHA-1.
fips . ./core/key ./core/telemetry ./core/fence ./httpmw ./httpmw/echomw ./httpmw/echo5mw ./httpmw/sqlstore
fips . -skip '^TestAnAnswerIsKeptForItsWindow$' ./httpmw/idempotency
fips . -run "^TestConformance(OnRedis|OnCluster)\$/($cases)" ./core/redislock
fips . -run "^Test(LocksWork(OverTLSWithThoseWhoProveWhoTheyAre|ByAnyProtocolAndDatabase)|AnAnswerIsTheSameWhetherACommandWasMergedOrNot|GuardRefusesTheLateWrite)\$" ./core/redislock
fips . -run "^TestConformanceOnFiveRedisServers\$/($cases)" ./core/redlock
fips core/etcdlock -run "^TestConformance\$/($cases)" .
fips core/natslock -run "^TestConformance\$/($cases)" .
fips core/memcachedlock -run "^TestConformanceOnMemcached\$/($cases)" .
fips core/zklock -run "^TestConformance\$/($cases)" .
fips core/sqllock -run "^TestConformanceOn(Postgres|MariaDB)\$/^defaults\$/($cases)" .
fips core/sqllock -run "^TestConformanceOnSQLite\$/($cases)" .
fips core/cmd/holdfast -run '^$' ./...
fips grpcmw ./...
fips grpcmw/connectmw ./...
fips httpmw/ginmw ./...
fips httpmw/fibermw ./...
fips taskmw/cronmw ./...
fips taskmw/watermillmw ./...
fips taskmw/rivermw ./...
fips core/internal/harness ./rivertest
fips taskmw/temporalmw ./...

# asynq makes its scripts with go-redis, which computes a SHA-1 for each, as the program starts. If this passes one
# day, docs/install.md is to be changed.
echo "== taskmw"
if (cd taskmw && GOWORK=off go test -count=1 -run '^$' -exec 'env GODEBUG=fips140=only' .) >/dev/null 2>&1; then
	echo "asynq starts: docs/install.md says that it does not" && rc=1
fi
exit $rc
