#!/usr/bin/env bash
# The whole test suite. Nothing needs to be started before; what the machine lacks is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

pg() { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null 2>&1; }
packages=(chromium=chromium git=git python3=python3 gcc=gcc pytest-3=python3-pytest)
/usr/bin/python3 -c "import jinja2" 2>/dev/null || packages+=(jinja2-for-python=python3-jinja2)
pg || packages+=(postgres=postgresql)
scripts/setup.sh "${packages[@]}"

echo "== console"
make --no-print-directory web
(cd web && npm run --silent lint && npm run --silent test)

echo "== program"
make --no-print-directory build
go vet ./...
test -z "$(gofmt -l $(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $(git ls-files '*.go'); exit 1; }

echo "== console in a browser"
(cd web && npm run --silent e2e)

echo "== demo"
scripts/demo_test.sh

echo "== go test"
go test -race -shuffle=on -timeout 15m ./...
