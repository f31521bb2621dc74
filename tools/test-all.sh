#!/usr/bin/env bash
# Runs what "make test" leaves out, step by step, all of them even if one fails; about 90 minutes on two cores.
#
#   tools/test-all.sh [STEP...]
set -uo pipefail

cd "$(dirname "$0")/.." || exit
root=$PWD
export GOWORK=off HOLDFAST_REQUIRE_SERVERS=1
chaos="$root/core/internal/harness/chaos"
mapfile -t modules < <(find . -name go.mod -not -path '*/testdata/*' -not -path '*/.*/*' -exec dirname {} + | grep -v "^./tools$" | sort)

# All tests: the topologies, clocks that step, TLS.
slow() { make test TESTFLAGS="-shuffle=on -count=1 -timeout=60m"; }
# The go.mod files ask for the oldest dependencies, which "make test" has. These are the newest ones.
newest() { tools/newest.sh "${modules[@]}" -- test -short -count=1 -timeout=30m ./...; }
fips() { tools/fips.sh; }
lockorder() { tools/lockorder.sh; }
spec() { tools/install-servers.sh spin && tools/spec.sh; }
chaos() {
	local rc=0
	make chaos || rc=1
	(cd "$chaos" && go test -count=1 -timeout=90m -v -run '^TestChaos$' . -args -chaos.service one -chaos.for 30s -chaos.gap 2s -chaos.only uneven,pause,hold) || rc=1
	return $rc
}
mutants() { cd "$chaos" && go test -count=1 -timeout=90m -v -run Mutant . -args -chaos.mutants all; }
# 300 of the small mutants that tools/mutants makes, others each day. Not among the steps by default: survivors.tsv has those of the
# engine, and not yet all of the adapters.
generated() { (cd tools && go run ./mutants); }
# Random combinations of calls and faults, in virtual time.
models() { cd "$root/core" && HOLDFAST_MODEL_SEEDS=40000 go test -count=1 -timeout=60m -v -run '^TestEveryCombinationKeepsOneHolderAndServesEverybody$' .; }
fuzz() { FUZZTIME=${FUZZTIME:-10s} tools/fuzz.sh; }
release() { make release; }

if [ $# -eq 0 ]; then set -- slow newest fips lockorder spec chaos mutants models fuzz release; fi
said=()
failed=0
for step in "$@"; do
	began=$SECONDS
	echo "== $step"
	if ("$step"); then end=passed; else end=FAILED failed=1; fi
	said+=("$(printf '%-9s %s, %d s' "$step" "$end" $((SECONDS - began)))")
done
echo "== in all:"
printf '%s\n' "${said[@]}"
exit "$failed"
