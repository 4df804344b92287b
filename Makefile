# Intendant: run `make help` for what there is.

BIN        := bin/intendant
VERSION    ?=
TAGS       := $(if $(EMBEDPG),embedpg)
GOTAGS     := $(if $(TAGS),-tags $(TAGS))
LDFLAGS    := -s -w $(if $(VERSION),-X main.version=$(VERSION))
TOOLS      := $(CURDIR)/bin/tools
DATA       ?= data
WEB_INPUTS := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)
CASES      ?= ../shared/conformance/visible.jsonl

.DEFAULT_GOAL := help
.PHONY: help build demo demo-stop test unit e2e lint vuln fuzz bench bench-reference conformance differential gen verify web clean bundle

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: web ## build bin/intendant with the console in it (EMBEDPG=1: with PostgreSQL in it too)
	@$(if $(EMBEDPG),$(MAKE) --no-print-directory bundle)
	go build $(GOTAGS) -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/intendant

demo: ## build, start a server with a sample repository, and print what to do next
	@scripts/demo.sh $(DATA)

demo-stop: ## stop the demo's server; its data stay
	@scripts/demo.sh stop $(DATA)

test: ## everything: needs nothing started, installs what it needs
	@scripts/test.sh

unit: ## the quick part of the tests, without browser, database and git servers
	go test -shuffle=on ./config ./diag/... ./model/... ./lang/... ./scheduler/engine/... ./agents/wire/... ./api/...

e2e: build ## the console through the real binary, in a real browser
	cd web && npm run e2e

lint: ## golangci-lint, ruff, mypy, eslint, the TypeScript compiler
	@scripts/lint.sh

vuln: ## known vulnerabilities in what we depend on (needs the vulnerability database)
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

fuzz: ## a minute of each fuzz target
	@scripts/fuzz.sh

bench: ## every benchmark; the numbers of docs/performance.md and docs/operations/throughput.md
	@scripts/bench.sh

bench-reference: build ## compile generated models with intendant and with the reference (REFERENCE_PYTHON=its python)
	@go run ./lang/langtest/versus -intendant $(BIN) $(VERSUS)

conformance: build ## compare the language with recorded cases (CASES=file.jsonl)
	python3 $(dir $(CASES))conform.py --bin $(BIN) $(CASES) -v

differential: ## compare the language with the reference on random models (REFERENCE_PYTHON=python, ARGS="-n 1000")
	@REFERENCE_PYTHON="$(REFERENCE_PYTHON)" DATA="$(DATA)" scripts/differential.sh $(ARGS)

gen: ## regenerate everything that is generated
	@scripts/gen.sh

verify: gen ## fail if generated files are not up to date
	git diff --exit-code

web: web/dist/index.html ## build the console

web/dist/index.html: $(WEB_INPUTS)
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run build

bundle: store/embedded/bundle/postgres.tar.zst

store/embedded/bundle/postgres.tar.zst: store/embedded/mkbundle/main.go
	go run ./store/embedded/mkbundle -o $@

clean: ## remove what was built; data/ stays
	rm -rf bin web/dist store/embedded/bundle
