#!/usr/bin/env bash
# Runs tests with mutexes that note in which order they are taken. Two of them that are taken in
# both orders are a deadlock that has not happened yet: the test that did it fails, and says where.
# The packages are $LOCKORDER, of the root module; else core and the backends that have mutexes.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp go.mod go.sum "$work"
go get -modfile="$work/go.mod" github.com/sasha-s/go-deadlock@v0.3.9

# Timeouts and their goroutines are left to the tests.
cat >"$work/off.go" <<'GO'
package driver

import "github.com/sasha-s/go-deadlock"

func init() { deadlock.Opts.DeadlockTimeout = 0 }
GO
replaced="\"$root/core/driver/lockorder.go\": \"$work/off.go\""
n=0
while read -r file; do
	n=$((n + 1))
	sed -E -e 's/\bsync\.(Mutex|RWMutex)\b/deadlock.\1/g' \
		-e '/^package /a import deadlock "github.com/sasha-s/go-deadlock"' \
		-e '$a var _ sync.Locker' "$file" >"$work/$n.go"
	replaced+=", \"$root/$file\": \"$work/$n.go\""
done < <(find core -name '*.go' -not -name '*_test.go' -exec grep -lE '\bsync\.(Mutex|RWMutex)\b' {} + | grep -v -E '^core/(drivertest|internal|etcdlock|natslock|zklock|sqllock|memcachedlock|cmd|telemetry)/')
echo "{\"Replace\": {$replaced}}" >"$work/overlay.json"

run() { go test -count=1 -modfile="$work/go.mod" -overlay="$work/overlay.json" "$@"; }
if [[ -n ${LOCKORDER:-} ]]; then
	# shellcheck disable=SC2086 # several packages
	run $LOCKORDER
	exit
fi
run -skip Memory ./core ./core/internal/share ./core/memlock ./core/redlock # these mutexes take memory themselves
# Of redislock the tests of what has mutexes: subscriptions, and round trips that are shared. The others take minutes.
tests=$(cd core/redislock && grep -hoE '^func Test[A-Za-z0-9]+' merge_test.go subscriber_test.go line_test.go inspect_test.go | sed 's/func //' | paste -sd '|')
run -run "^($tests)\$" ./core/redislock
