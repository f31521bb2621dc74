#!/usr/bin/env bash
# Searches the model of the line in docs/spec with spin, exhaustively. Every scene must keep every
# promise, and every deliberate fault must break the promise that it is there for.
#
#   tools/spec.sh              all of them, two at a time
#   tools/spec.sh NAME...      these scenes and faults
#   tools/spec.sh -show NAME   one of them, with the steps that break a promise
set -euo pipefail

cd "$(dirname "$0")/../docs/spec"

# Prints the words that follow a name in a table.
row() { awk -v name="$2" '$1 == name { $1 = ""; print }' "$1"; }
names() { awk '!/^#/ { print $1 }' scenes.txt faults.txt; }

if [ $# -eq 0 ]; then
	names | xargs -P 2 -n 1 "../../tools/${0##*/}" || exit 1
	exit 0
fi

show=
if [ "$1" = -show ]; then
	show=yes
	shift
fi
optimize=-O1 # compiling takes as long as searching
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds the search for a scene and runs it. What breaks, if anything does, is left in "broken",
# and the run that breaks it in "run".
search() {
	local model=$PWD/line.pml
	(
		cd "$work"
		rm -f ./*
		cp "$model" .
		spin "${@/#/-D}" -a line.pml >spin.out || { cat spin.out >&2; exit 1; }
		gcc $optimize -w -DSAFETY -DMEMLIM=4000 -o pan pan.c
		./pan -E -m1000000 -w22 >pan.out
		: >broken
		: >run
		if [ -e line.pml.trail ]; then
			./pan -r >run 2>&1 || true
			sed -n 's/^ *broken: //p' run | head -n 1 >broken
			[ -s broken ] || head -n 1 pan.out >broken
		elif ! grep -q 'errors: 0$' pan.out || grep -q 'not completed\|too small' pan.out; then
			echo "the search did not end" >broken
		fi
	) || {
		broken="it cannot be built" states=0
		return
	}
	broken=$(cat "$work/broken")
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/pan.out")
	if [ -n "$show" ]; then
		grep '^ *\(server\|process\|clock\|operator\|clean-up\)' "$work/run" || true
	fi
}

check() {
	local name=$1 fault scene promise
	fault=$(row faults.txt "$name")
	if [ -z "$fault" ]; then
		scene=$(row scenes.txt "$name")
		[ -n "$scene" ] || { echo "$name: no such scene or fault" >&2; return 1; }
		search $scene # its words are the definitions
		[ -z "$broken" ] && echo "$name: holds in all of $states states" && return
		echo "$name: breaks \"$broken\"; for the steps: tools/spec.sh -show $name"
		return 1
	fi
	read -r scene promise <<<"$fault"
	optimize=-O0 # a fault is found early
	search $(row scenes.txt "$scene") "$name"
	[ "$broken" = "$promise" ] && echo "$name: found, breaks $promise in $scene" && return
	echo "$name: breaks \"$broken\" in $scene, and should break $promise"
	return 1
}

rc=0
for name in "$@"; do
	check "$name" || rc=1
done
exit $rc
