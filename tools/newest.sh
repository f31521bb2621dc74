#!/usr/bin/env bash
# Runs a go command in module directories with the newest versions of all dependencies:
#
#	tools/newest.sh directory... -- test ./...
#
# The go.mod files stay as they are: they ask for the oldest versions. Others are made for the moment.
set -euo pipefail
export GOWORK=off

root=$(cd "$(dirname "$0")/.." && pwd)
directories=()
while [ "$1" != -- ]; do
	directories+=("$1")
	shift
done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
for directory in "${directories[@]}"; do
	echo "== $directory"
	cd "$root/$directory"
	cp go.mod "$work/go.mod"
	: >"$work/go.sum"
	if [ -f go.sum ]; then cp go.sum "$work/go.sum"; fi
	# Ours are in the repository, and stay.
	mapfile -t newest < <(go mod edit -json | sed -n '/"Require"/,/\]/s/.*"Path": "\(.*\)",/\1@latest/p' | grep -v '^github.com/holdfast-go/holdfast')
	if [ ${#newest[@]} -gt 0 ]; then
		go get -modfile="$work/go.mod" "${newest[@]}" 2>"$work/said" || { cat "$work/said"; failed=1; continue; }
	fi
	go mod tidy -modfile="$work/go.mod" 2>"$work/said" || { cat "$work/said"; failed=1; continue; }
	go "$1" -modfile="$work/go.mod" "${@:2}" || failed=1
done
exit "$failed"
