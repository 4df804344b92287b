#!/usr/bin/env bash
# Builds everything, starts a server with its own PostgreSQL and agents, makes a sample repository with a webhook, deploys
# it for the first time, and tells what to do next. Run again, it goes on with what is there.
#
# usage: scripts/demo.sh [DIR]         all state goes there (default: data)
#        scripts/demo.sh stop [DIR]    stops the server
set -euo pipefail
cd "$(dirname "$0")/.."

action=start
if [ "${1:-}" = stop ]; then action=stop; shift; fi
mkdir -p "${1:-data}"
data=$(cd "${1:-data}" && pwd)
port=${DEMO_PORT:-8888}
url=http://127.0.0.1:$port
pidfile=$data/server.pid

running() { [ -s "$pidfile" ] && kill -0 "$(cat "$pidfile")" 2>/dev/null && grep -qz intendant "/proc/$(cat "$pidfile")/cmdline" 2>/dev/null; }

if [ $action = stop ]; then
  if running; then
    kill "$(cat "$pidfile")"
    while running; do sleep 0.1; done
    echo "The server is stopped; its data stay in $data."
  else
    echo "No server of $data is running."
  fi
  rm -f "$pidfile"
  exit 0
fi

# A machine without PostgreSQL gets one inside the program.
if ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && ! compgen -G '/usr/pgsql-*/bin/postgres' >/dev/null && ! command -v postgres >/dev/null 2>&1; then
  export EMBEDPG=1
fi
echo "Building …"
make --no-print-directory build >"$data/build.log" 2>&1 || { tail -40 "$data/build.log" >&2; echo "The build failed; see $data/build.log" >&2; exit 1; }
intendant=$PWD/bin/intendant

export INTENDANT_CONFIG_STATE_DIR=$data/state
export INTENDANT_SERVER_BIND_PORT=$port
export INTENDANT_CMDLINE_REST_TRANSPORT_HOST=127.0.0.1
export INTENDANT_CMDLINE_REST_TRANSPORT_PORT=$port

begun=$(date +%s.%N)
if running; then
  echo "The server is running already (process $(cat "$pidfile"))."
else
  # A session of its own: it outlives this script and its terminal.
  setsid nohup "$intendant" server --log-format json >>"$data/server.log" 2>&1 </dev/null &
  echo $! >"$pidfile"
  if ! "$intendant" status --wait 60s >/dev/null; then
    tail -20 "$data/server.log" >&2
    echo "The server did not start; see $data/server.log" >&2
    exit 1
  fi
fi

repo=$data/demo.git
if [ ! -d "$repo" ]; then
  git init --quiet --bare --initial-branch=main "$repo"
  (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$data/hook.secret")
  cat >"$repo/hooks/post-receive" <<HOOK
#!/bin/sh
# Tells the server about each push, with a signed webhook: it looks at once instead of at its next poll.
exec "$intendant" hook --server "$url" --repository demo --secret-file "$data/hook.secret"
HOOK
  chmod +x "$repo/hooks/post-receive"
fi

there() { "$intendant" "$@" >/dev/null 2>&1; }
there repository show demo || "$intendant" repository create demo --url "file://$repo" --provider generic --webhook-secret-file "$data/hook.secret" >/dev/null
there project show demo || "$intendant" project create -n demo >/dev/null
there environment show demo || "$intendant" environment create -n demo -p demo --repository demo --branch main >/dev/null

if [ -z "$(git -C "$repo" for-each-ref)" ]; then
  first=$(mktemp -d)
  git clone --quiet "$repo" "$first/demo" 2>/dev/null
  cp -R examples/demo/. "$first/demo/"
  sed -i "s|@TARGET@|$data/demo-target|; s|@OWNER@|$(id -un)|; s|@GROUP@|$(id -gn)|" "$first/demo/main.cf"
  git -C "$first/demo" add -A
  git -C "$first/demo" -c user.name=demo -c user.email=demo@localhost commit --quiet -m 'Deploy the sample'
  git -C "$first/demo" push --quiet origin HEAD:main 2>/dev/null
  rm -rf "$first"
fi
"$intendant" environment wait demo --timeout 120s
awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { printf "First deployment done %.1f s after the start of the server.\n", b - a }'

cat <<NEXT

  Console:   $url/console
  Deployed:  $data/demo-target

Now change something and push it:

  git clone $repo demo
  cd demo && sed -i 's/Hello from git/Hello from me/' main.cf
  git commit -am 'Change the greeting' && git push

then look at $data/demo-target/greeting.txt, or follow it with

  INTENDANT_CMDLINE_REST_TRANSPORT_PORT=$port $intendant environment watch demo

Stop the server with: make demo-stop
NEXT
