#!/usr/bin/env bash
# Usage: tools/demo.sh <major | path of pg_config>     a workflow on a queue, from nothing, on a throwaway server
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

lock_cache
tools/install.sh "$1"
pg_config=$(pg_config_of "$1")

dir=$(mktemp -d)
trap 'tools/server.sh stop "$dir" || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
url=$(tools/server.sh start "$pg_config" "$dir")
say "demo: throwaway server at $url"

# Not a release build: that takes 3 minutes instead of 1.5 and leaves nothing that 'make test' can use.
DUROXIDE_QUEUE_TEST_URL=$url DUROXIDE_QUEUE_TEST_PG=$(major_of "$pg_config") CARGO_TARGET_DIR=$CLIENT_TARGET \
  cargo run --manifest-path tests/client/Cargo.toml --bin demo

cat <<'NEXT'

On your own server:
  make install PG_CONFIG=/path/to/pg_config
  psql -c "CREATE EXTENSION duroxide_queue"
  psql -c "SELECT duroxide_queue.create_queue('app')"
and open the schema 'app' with duroxide-pg.
NEXT
