#!/usr/bin/env bash
# Usage: tools/chaos.sh [major...]     the long form of the chaos test, on each of these versions of PostgreSQL (17)
# DUROXIDE_QUEUE_CHAOS_SECONDS: how long the chaos lasts (90). DUROXIDE_QUEUE_CHAOS_SEED: the choices of an earlier run.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- 17
cd "$ROOT"

lock_cache
export DUROXIDE_QUEUE_CHAOS_SECONDS=${DUROXIDE_QUEUE_CHAOS_SECONDS:-90} CARGO_TARGET_DIR=$CLIENT_TARGET
for major in "$@"; do
  CARGO_TARGET_DIR=$EXTENSION_TARGET tools/install.sh "$major"
  say "chaos: PostgreSQL $major, $DUROXIDE_QUEUE_CHAOS_SECONDS s"
  # It starts a server of its own, to stop it in immediate mode.
  DUROXIDE_QUEUE_TEST_PG=$major cargo test --quiet --manifest-path tests/client/Cargo.toml --test chaos -- --nocapture
done
