#!/usr/bin/env bash
# All linters, at the versions pinned here; what the machine lacks of them is put into bin/tools once.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v2.15.0
lint=bin/tools/golangci-lint
if ! [ -x "$lint" ] || ! "$lint" version 2>/dev/null | grep -q "${version#v}"; then
  GOBIN="$PWD/bin/tools" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
"$lint" run ./...

# The Python packages: the linters live in an environment of their own, made anew when a pin changes. pytest is there for its types.
pins=(ruff==0.17.6 mypy==2.4.1 pytest==9.2.0)
env=$PWD/bin/tools/pylint-env
if [ "$(cat "$env/pins" 2>/dev/null)" != "${pins[*]}" ]; then
  rm -rf "$env"
  python3 -m venv "$env" || { echo "lint: python3 -m venv failed: install Python 3.10 or newer with venv (Debian: python3-venv)" >&2; exit 1; }
  "$env/bin/pip" install --quiet --disable-pip-version-check "${pins[@]}"
  echo "${pins[*]}" >"$env/pins"
fi
packages=(inmanta intendant_host pytest_inmanta tests)
(cd python && "$env/bin/ruff" check "${packages[@]}" testdata && "$env/bin/mypy" "${packages[@]}")
# A module as its author checks it: the package is installed where mypy looks for those that say that they have types.
site=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
ln -sfn "$PWD/python/inmanta" "$site/inmanta"
(cd python/testdata/typed && "$env/bin/mypy" --strict --namespace-packages --explicit-package-bases inmanta_plugins)

# The console.
make --no-print-directory web
(cd web && npm run --silent lint)
