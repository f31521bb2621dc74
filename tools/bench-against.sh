#!/usr/bin/env bash
# Measures Holdfast beside itself at another commit, in interleaved rounds of one run.
#
#   tools/bench-against.sh COMMIT [FLAGS OF BENCH...]
set -euo pipefail

cd "$(dirname "$0")/.."
commit=${1:?a commit}
shift
there=$(mktemp -d)
trap 'git worktree remove --force "$there"' EXIT
git worktree add --quiet --detach "$there" "$commit"
export GOWORK=off
(cd "$there/core/internal/harness/bench" 2>/dev/null || cd "$there/core/bench" && go test -c -buildvcs=false -o "$there/before" .)
cd core/internal/harness/bench
go test -buildvcs=false -count=1 -timeout=2h -v -run '^TestBench$' . -args -figures -against "$there/before" "$@"
