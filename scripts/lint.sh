#!/usr/bin/env bash
# All linters. golangci-lint is built once into bin/tools, at the version pinned here.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v2.15.0
lint=bin/tools/golangci-lint
if ! [ -x "$lint" ] || ! "$lint" version 2>/dev/null | grep -q "${version#v}"; then
  GOBIN="$PWD/bin/tools" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
"$lint" run ./...
make --no-print-directory web
(cd web && npm run --silent lint)
