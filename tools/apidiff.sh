#!/usr/bin/env bash
# Compares the API of each released module with that of the last release. An incompatible change is allowed before 1.0.0
# only, and only if the changelog tells of it: under "### Changed" or "### Removed" in what is unreleased.
set -euo pipefail
export GOWORK=off

cd "$(dirname "$0")/.."
root=$PWD
last=$(git tag --list 'v[0-9]*' --sort=-version:refname | head -n 1)
if [ -z "$last" ]; then
	echo "there is no release yet: nothing to compare with"
	exit 0
fi
work=$(mktemp -d)
trap 'git worktree remove --force "$work/old"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/old" "$last"
go build -modfile=tools/go.mod -o "$work/apidiff" golang.org/x/exp/cmd/apidiff

broken=0
while read -r file; do
	module=$(dirname "$file")
	if head -n 1 "$file" | grep -q '^// Not released' || [ ! -f "$work/old/$file" ]; then continue; fi
	# The old tree finds its neighbours in itself: their versions are those of the release.
	(cd "$work/old/$module" && go mod edit -json | grep -o '"Path": "github.com/holdfast-go/holdfast[^"]*"' | cut -d'"' -f4 | sort -u | while read -r path; do
		go mod edit -replace "$path=$work/old${path#github.com/holdfast-go/holdfast}"
	done)
	path=$(cd "$module" && go list -m)
	(cd "$work/old/$module" && GOFLAGS=-mod=mod "$work/apidiff" -m -w "$work/old.api" "$path")
	(cd "$module" && "$work/apidiff" -m -w "$work/new.api" "$path")
	echo "== $module"
	"$work/apidiff" -m "$work/old.api" "$work/new.api"
	if [ -n "$("$work/apidiff" -m -incompatible "$work/old.api" "$work/new.api")" ]; then broken=1; fi
done < <(git ls-files '*go.mod' | grep -v '/testdata/')

if [ "$broken" = 0 ]; then exit 0; fi
if [[ $last != v0.* ]]; then
	echo "FAILED: an incompatible change since $last" >&2
	exit 1
fi
if ! sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' "$root/CHANGELOG.md" | grep -q -E '^### (Changed|Removed)'; then
	echo "FAILED: an incompatible change since $last that CHANGELOG.md does not tell of under Changed or Removed" >&2
	exit 1
fi
