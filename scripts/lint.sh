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
# The Python packages, with the linters that are installed.
for tool in ruff mypy; do
  if ! command -v "$tool" >/dev/null; then
    echo "lint: $tool is not installed: the Python packages are not checked by it" >&2
    continue
  fi
  case $tool in
    ruff) (cd python && ruff check inmanta intendant_host pytest_inmanta tests) ;;
    mypy) (cd python && mypy inmanta intendant_host pytest_inmanta tests) ;;
  esac
done
make --no-print-directory web
(cd web && npm run --silent lint)
