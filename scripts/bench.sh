#!/usr/bin/env bash
# Every benchmark of the tree. BENCH=regexp narrows, COUNT repeats (10 for benchstat). With REFERENCE_PYTHON, a Python that has the
# reference's package, generated models are compiled by both, side by side, before that.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${REFERENCE_PYTHON:-}" ]; then
	make --no-print-directory bench-reference
fi
exec go test -run='^$' -bench="${BENCH:-.}" -benchmem -count="${COUNT:-1}" -timeout 60m ./...
