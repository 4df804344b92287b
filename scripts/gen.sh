#!/usr/bin/env bash
# Regenerates what is generated: SQL code, reference pages, the OpenAPI file, the console's API types.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.31.1
sqlc=bin/tools/sqlc
[ -x "$sqlc" ] || GOBIN="$PWD/bin/tools" go install "github.com/sqlc-dev/sqlc/cmd/sqlc@$version"
"$sqlc" generate
go generate ./...
go run ./cmd/intendant config --reference >docs/operations/configuration.md
go run ./cmd/intendant explain --reference >docs/language/diagnostics.md
make --no-print-directory web
(cd web && npm run --silent gen)
