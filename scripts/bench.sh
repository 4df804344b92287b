#!/usr/bin/env bash
# Every benchmark of the tree. BENCH=regexp narrows, COUNT repeats (10 for benchstat).
set -euo pipefail
cd "$(dirname "$0")/.."
exec go test -run='^$' -bench="${BENCH:-.}" -benchmem -count="${COUNT:-1}" -timeout 60m ./...
