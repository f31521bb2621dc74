#!/usr/bin/env bash
# Runs the tests of core/redislock, with the conformance suite in each topology, and a short fault run on each server
# that is named, one after the other. It prints a table.
#
#   HOLDFAST_REDIS_SERVERS="/path/to/redis-server /path/to/valkey-server" tools/servers-matrix.sh
#
# Without the variable, it is HOLDFAST_REDIS_SERVER, or else the redis-server on the PATH. It takes about ten minutes
# for each. It fails if a test does, and runs what is left. What can be said:
#
#   TESTS     a pattern of tests; all of them by default
#   CHAOS     how long there are faults in each service, 10s by default; 0 for none
#   PARALLEL  how many tests run at the same time, 4 by default: they mostly wait
#   KEEP      a folder for the output of the tests
#   BIN       a folder with the two test binaries, which "tools/servers-matrix.sh build" has put there: with them no Go
#             is needed, as in a server's own container
set -euo pipefail

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=${BIN:-$work}
case $bin in /*) ;; *) bin=$PWD/$bin ;; esac

build() {
	mkdir -p "$bin"
	(cd core/redislock && CGO_ENABLED=0 go test -c -o "$bin/redislock.test" .)
	(cd core/internal/harness/chaos && CGO_ENABLED=0 go test -c -o "$bin/chaos.test" .)
}

if [ "${1:-}" = build ]; then
	build
	exit
fi
if [ ! -x "$bin/redislock.test" ] || [ ! -x "$bin/chaos.test" ]; then build; fi

read -r -a all <<<"${HOLDFAST_REDIS_SERVERS:-${HOLDFAST_REDIS_SERVER:-redis-server}}"

# name says which server it is: "Redis 7.0.15", "Valkey 8.0.1", "Dragonfly 1.27.1".
name() {
	"$1" --version | sed -nE '1{s/^(KeyDB|Redis|Valkey) server v=([0-9.]+).*/\1 \2/; s/^Server v=([0-9.]+).*/Valkey \1/; s/^dragonfly v?([0-9.]+).*/Dragonfly \1/; p}'
}

# count says how many of some results have passed, of a file with a line "PASS|FAIL|SKIP name" each.
count() {
	local pass fail skip
	pass=$(grep -cE "^PASS $1\$" "$2" || true)
	fail=$(grep -cE "^FAIL $1\$" "$2" || true)
	skip=$(grep -cE "^SKIP $1\$" "$2" || true)
	if [ $((pass + fail)) -eq 0 ]; then echo "not run"; return; fi
	if [ "$1" != 'Test[^/]+' ]; then skip=0; fi # cases of what a backend does not have
	echo "$pass of $((pass + fail))$([ "$skip" -eq 0 ] || echo ", $skip left out")"
}

row() {
	local server out=$work/out results=$work/results chaos="not run" red=""
	server=$(command -v "$1") || { echo "there is no $1" >&2; return 1; }
	case $server in /*) ;; *) server=$PWD/$server ;; esac
	(cd core/redislock && HOLDFAST_REDIS_SERVER=$server "$bin/redislock.test" -test.v -test.timeout 60m -test.parallel "${PARALLEL:-4}" \
		-test.run "${TESTS:-.}" -test.skip 'OnMiniredis|Fuzz' >"$out" 2>&1) || failed=1
	grep -E '^ *--- (PASS|FAIL|SKIP): ' "$out" | sed -E 's/^ *--- ([A-Z]+): ([^ ]+) .*/\1 \2/' >"$results"
	if [ "${CHAOS:-10s}" != 0 ]; then
		chaos=green
		for service in one redlock; do
			(cd core/internal/harness/chaos && HOLDFAST_REDIS_SERVER=$server "$bin/chaos.test" -test.timeout 15m -test.run '^TestChaos$' \
				-chaos.service "$service" -chaos.for "${CHAOS:-10s}" >>"$out" 2>&1) || red="$red $service"
		done
		if [ -n "$red" ]; then chaos="red:$red" failed=1; fi
	fi
	if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP" && cp "$out" "$KEEP/$(name "$server").log"; fi
	if [ "${failed:-0}" -ne 0 ]; then grep -E '^ *--- FAIL: |^panic: ' "$out" >&2 || true; fi
	echo "| $(name "$server") | $(count 'TestConformanceOnRedis/[^/]+' "$results") |" \
		"$(count 'TestConformanceOfAPlainClientWhereSlotsAreChecked/[^/]+' "$results") | $(count 'TestConformanceOnCluster/[^/]+' "$results") |" \
		"$(count 'TestConformanceBySentinel/[^/]+' "$results") |" \
		"$(count 'Test[^/]+' "$results") | $chaos |"
}

failed=0
echo "| server | one server | plain client, slots checked | Cluster client, six nodes | Sentinel | all tests | chaos |"
echo "|---|---|---|---|---|---|---|"
for server in "${all[@]}"; do
	row "$server"
done

exit "$failed"
