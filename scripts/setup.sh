#!/usr/bin/env bash
# Installs what the tests need and the machine lacks: Debian packages (as root), the console's npm packages.
# usage: scripts/setup.sh [PROGRAM=PACKAGE ...]
set -euo pipefail
cd "$(dirname "$0")/.."

need=()
for pair in "$@"; do
  program=${pair%%=*} package=${pair#*=}
  command -v "$program" >/dev/null 2>&1 || [ -x "/usr/sbin/$program" ] || need+=("$package")
done
if [ ${#need[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: please install these packages: ${need[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${need[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${need[@]}"; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  rm -f "$log"
fi
