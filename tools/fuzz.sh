#!/usr/bin/env bash
# Usage: tools/fuzz.sh [major...]     the long form of the fuzz tests, on each of these versions of PostgreSQL (17)
# DUROXIDE_QUEUE_FUZZ_CALLS: how many calls (120000). DUROXIDE_QUEUE_FUZZ_SEED: those of an earlier run.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- 17
cd "$ROOT"

lock_cache
dir=$(mktemp -d)
trap 'tools/server.sh stop "$dir" || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
export DUROXIDE_QUEUE_FUZZ_CALLS=${DUROXIDE_QUEUE_FUZZ_CALLS:-120000}
for major in "$@"; do
  tools/setup.sh "$major"
  # The build of the tests, not a release build: in it an overflow is an error, and is found.
  CARGO_TARGET_DIR=$EXTENSION_TARGET CARGO_PGRX_DISABLE_GC_SECTIONS_WORKAROUND=1 PGRX_BUILD_FLAGS=--examples \
    cargo pgrx install --no-default-features --features "pg$major" --pg-config "$(pg_config_of "$major")" >/dev/null
  url=$(tools/server.sh start "$major" "$dir")
  say "fuzz: PostgreSQL $major, $DUROXIDE_QUEUE_FUZZ_CALLS calls"
  DUROXIDE_QUEUE_TEST_URL=$url DUROXIDE_QUEUE_TEST_PG=$major CARGO_TARGET_DIR=$CLIENT_TARGET \
    cargo test --quiet --manifest-path tests/client/Cargo.toml --test fuzz -- --nocapture
  tools/server.sh stop "$dir"
  rm -rf "$dir"
done
