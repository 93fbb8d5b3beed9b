#!/usr/bin/env bash
# Usage: tools/figures.sh [major...]     the long forms of the tests that measure memory, WAL and pages (17), and what they measured
# DUROXIDE_QUEUE_FIGURES_CALLS: calls of each kind (100000). DUROXIDE_QUEUE_FIGURES_IN_ONE_TRANSACTION: turns in one (5000).
# DUROXIDE_QUEUE_FIGURES_QUEUES: queues that one session visits (500). DUROXIDE_QUEUE_FIGURES_TURNS: turns under a held snapshot (5000).
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- 17
cd "$ROOT"

lock_cache
dir=$(mktemp -d)
trap 'tools/server.sh stop "$dir" || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
export DUROXIDE_QUEUE_FIGURES_CALLS=${DUROXIDE_QUEUE_FIGURES_CALLS:-100000}
export DUROXIDE_QUEUE_FIGURES_IN_ONE_TRANSACTION=${DUROXIDE_QUEUE_FIGURES_IN_ONE_TRANSACTION:-5000}
export DUROXIDE_QUEUE_FIGURES_QUEUES=${DUROXIDE_QUEUE_FIGURES_QUEUES:-500}
export DUROXIDE_QUEUE_FIGURES_TURNS=${DUROXIDE_QUEUE_FIGURES_TURNS:-5000}
for major in "$@"; do
  CARGO_TARGET_DIR=$EXTENSION_TARGET tools/install.sh "$major"
  url=$(tools/server.sh start "$major" "$dir")
  say "figures: PostgreSQL $major"
  # One test after the other, so that none disturbs what another measures.
  DUROXIDE_QUEUE_TEST_URL=$url DUROXIDE_QUEUE_TEST_PG=$major CARGO_TARGET_DIR=$CLIENT_TARGET \
    cargo test --quiet --manifest-path tests/client/Cargo.toml --test plans_and_memory --test claim_rules -- \
    --nocapture --test-threads=1 e2_ e5_ empty_polls_leave | sed -n -e 's/^.*figure: //p' -e '/^test result\|panicked/p'
  tools/server.sh stop "$dir"
  rm -rf "$dir"
done
