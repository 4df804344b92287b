#!/usr/bin/env bash
# Compares the language with the reference implementation on random models; arguments go to lang/differential (-n, -seed, -cases …).
# REFERENCE_PYTHON names a Python that can import the reference; without it the first one in PATH that can, else a virtual
# environment in data/reference, which takes Python 3.13 or newer and a package index.
set -euo pipefail
cd "$(dirname "$0")/.."
core=${REFERENCE_CORE:-inmanta-core==19.0.0}
std=${REFERENCE_STD:-inmanta-module-std==8.7.3}
venv=${DATA:-data}/reference

has_reference() { "$1" -c 'import inmanta.compiler, inmanta_plugins.std' 2>/dev/null; }

find_python() {
  if [ -n "${REFERENCE_PYTHON:-}" ]; then
    has_reference "$REFERENCE_PYTHON" || { echo "differential: $REFERENCE_PYTHON can not import the reference: pip install $core $std" >&2; return 1; }
    echo "$REFERENCE_PYTHON"
    return
  fi
  local python
  for python in "$venv/bin/python" python3 python3.13 python3.14; do
    if command -v "$python" >/dev/null && has_reference "$python"; then
      echo "$python"
      return
    fi
  done
  for python in python3.13 python3.14 python3; do
    if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2>/dev/null; then
      { "$python" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet "$core" "$std"; } >&2 || {
        echo "differential: $core can not be installed with $python" >&2
        return 1
      }
      echo "$venv/bin/python"
      return
    fi
  done
  echo "differential: the reference needs Python 3.13 or newer: install one, or name one in REFERENCE_PYTHON that can import $core" >&2
  return 1
}

python=$(find_python)
exec go run ./lang/differential -python "$python" "$@"
