#!/usr/bin/env bash
# Takes the pictures of the inspector's page for README and docs, from the traffic of the demo.
set -euo pipefail

cd "$(dirname "$0")/.."
log=$(mktemp)
go build -o "$log.demo" ./examples/demo
"$log.demo" -ui >"$log" 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; rm -f "$log" "$log.demo"' EXIT
echo "Traffic for 90 s, so that there is something to see"
sleep 90
url=$(grep -o 'http://[^ ]*/' "$log" | head -n 1)
(cd core/inspector/inspectortest && go run ./shots -url "$url" -to ../../../docs)
