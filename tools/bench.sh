#!/usr/bin/env bash
# Usage: tools/bench.sh <major> [row...]     duroxide_queue against duroxide-pg's own procedures, into docs/performance.md
# Rows are selected by how their names begin; without any, all are run and the page is written.
# DUROXIDE_QUEUE_BENCH_URL: a server that runs and has the extension; then nothing is built and none is started.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

major=$1
shift

# As a production server would be set: what is committed synchronously is on disk.
SETTINGS="fsync = on
full_page_writes = on
shared_buffers = 1GB
max_wal_size = 4GB
checkpoint_timeout = 15min"

url=${DUROXIDE_QUEUE_BENCH_URL:-}
if [ -z "$url" ]; then
  lock_cache # not for a server of the caller's: it may be compared with the next build meanwhile
  POOLER_TOO=1 tools/install.sh "$major"
  dir=$(mktemp -d)
  trap 'tools/server.sh stop "$dir" || true; rm -rf "$dir"' EXIT
  trap 'exit 130' INT TERM
  url=$(SERVER_SETTINGS=$SETTINGS tools/server.sh start "$major" "$dir")
fi

# In release, so that the client is out of the server's way.
DUROXIDE_QUEUE_TEST_URL=$url DUROXIDE_QUEUE_BENCH_BIN=$CACHE/pg/$major/bin DUROXIDE_QUEUE_BENCH_RUNS=$CACHE/bench \
  CARGO_TARGET_DIR=$CLIENT_TARGET cargo run --release --quiet --manifest-path tests/bench/Cargo.toml -- "$@"
