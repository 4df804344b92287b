#!/usr/bin/env bash
# Runs each fuzz target for a while: FUZZTIME, default one minute.
set -euo pipefail
cd "$(dirname "$0")/.."
for file in $(git grep -lE '^func Fuzz' -- '*_test.go'); do
  for target in $(grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | sed 's/func //'); do
    echo "== $target in $(dirname "$file")"
    go test -run='^$' -fuzz="^$target\$" -fuzztime="${FUZZTIME:-1m}" "./$(dirname "$file")"
  done
done
