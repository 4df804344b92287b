#!/usr/bin/env bash
# Does what the README's five minutes say, in a directory of its own: demo, clone, edit, push, look, stop.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
chmod 755 "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export DEMO_PORT=$port
trap 'scripts/demo.sh stop "$dir/data" >/dev/null; rm -rf "$dir"' EXIT

fail() { echo "demo: $1" >&2; tail -20 "$dir/data/server.log" >&2; exit 1; }

scripts/demo.sh "$dir/data" >"$dir/said"
grep -q "http://127.0.0.1:$port/console" "$dir/said" || fail "the console's address is not printed"
[ "$(cat "$dir/data/demo-target/greeting.txt")" = 'Hello from git' ] || fail "the sample is not deployed"

git clone --quiet "$dir/data/demo.git" "$dir/demo"
cd "$dir/demo"
sed -i 's/Hello from git/Hello from me/' main.cf
git -c user.name=demo -c user.email=demo@localhost commit --quiet -am 'Change the greeting'
begun=$(date +%s%N)
git push --quiet 2>/dev/null
until [ "$(cat "$dir/data/demo-target/greeting.txt")" = 'Hello from me' ]; do
  [ $((($(date +%s%N) - begun) / 1000000000)) -lt 60 ] || fail "the push is not deployed after a minute"
  sleep 0.02
done
echo "demo: a push was on disk after $((($(date +%s%N) - begun) / 1000000)) ms"
cd - >/dev/null
scripts/demo.sh "$dir/data" >"$dir/said" || fail "a second run fails"
grep -q 'is running already' "$dir/said" || fail "a second run starts a second server"
