#!/usr/bin/env bash
# Runs govulncheck in the module directories given as arguments.
#
# The database is on the network. Where it cannot be reached, this says so and succeeds; with
# HOLDFAST_REQUIRE_VULNDB=1, as in CI's own step, it fails instead. Nothing else is
# tolerated, so the two must be told apart with care:
#
#   exit 0  nothing found
#   exit 3  vulnerabilities found
#   exit 2  wrong usage
#   exit 1  any error: code that does not load, a broken tool, and a failed fetch too
#
# govulncheck fetches the database after it has loaded the packages and before it looks at
# them. So a failed fetch is an exit 1 whose last word on stderr is "govulncheck: fetching
# vulnerabilities: ...", and nothing can have been found yet. The words come from the pinned
# version: if a new one puts them differently, this fails rather than skips.
set -euo pipefail

cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Built first and run by its path: go tool could have a failure of its own to report.
go build -modfile="$root/tools/go.mod" -o "$work/govulncheck" golang.org/x/vuln/cmd/govulncheck

failed=0
for module in "$@"; do
	echo "== govulncheck $module"
	code=0
	(cd "$root/$module" && "$work/govulncheck" ./...) 2>"$work/stderr" || code=$?
	cat "$work/stderr" >&2
	if [ "$code" -eq 1 ] && tail -n 1 "$work/stderr" | grep -q '^govulncheck: fetching vulnerabilities: '; then
		if [ "${HOLDFAST_REQUIRE_VULNDB:-}" = 1 ]; then
			echo "FAILED: the vulnerability database cannot be reached, and HOLDFAST_REQUIRE_VULNDB=1" >&2
			exit 1
		fi
		echo "SKIPPED: the vulnerability database cannot be reached; nothing was checked from $module on" >&2
		exit "$failed"
	fi
	if [ "$code" -ne 0 ]; then
		failed=1
	fi
done
exit "$failed"
