#!/usr/bin/env bash
# Runs every fuzz test of every module, one after the other, each for $FUZZTIME.
set -euo pipefail

cd "$(dirname "$0")/.."
failed=0
while IFS=: read -r file func; do
	name=${func#func }
	name=${name%(}
	echo "== $(dirname "$file") $name"
	(cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-60s}" .) || failed=1
done < <(grep -rHoE --include='*_test.go' --exclude-dir=testdata --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]*\(' . | sort)
exit "$failed"
