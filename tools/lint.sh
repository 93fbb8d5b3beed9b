#!/usr/bin/env bash
# Usage: tools/lint.sh [major...]     formatting, and clippy for each of these versions of PostgreSQL
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- "${ALL_MAJORS[@]}"
cd "$ROOT"

# Only what fails is worth reading.
check() {
  local what=$1 begin=$SECONDS out
  shift
  printf 'lint, %s: ' "$what"
  out=$("$@" 2>&1) || { printf 'failed\n%s\n' "$out"; exit 1; }
  echo "done, $((SECONDS - begin)) s"
}

unformatted_go() { local files; files=$(gofmt -l examples/go); echo "$files"; [ -z "$files" ]; }

check "cargo fmt" cargo fmt --check
check "cargo fmt, client tests" cargo fmt --check --manifest-path tests/client/Cargo.toml
check "cargo fmt, example" cargo fmt --check --manifest-path examples/rust/Cargo.toml
! command -v gofmt >/dev/null || check gofmt unformatted_go
check "cargo fmt, benchmark" cargo fmt --check --manifest-path tests/bench/Cargo.toml
! command -v shellcheck >/dev/null || check shellcheck shellcheck -x -P tools tools/*.sh .ci/run
for major in "$@"; do
  CARGO_TARGET_DIR=$EXTENSION_TARGET check "clippy, pg$major" \
    cargo clippy --quiet --all-targets --no-default-features --features "pg$major pg_test" -- -D warnings
done
cd tests/client
CARGO_TARGET_DIR=$CLIENT_TARGET check "clippy, client tests" cargo clippy --quiet --all-targets -- -D warnings
# Nothing else of 'make test' needs its dependencies.
if [ -n "${TEST_ALL:-}" ]; then
  cd ../bench
  CARGO_TARGET_DIR=$CLIENT_TARGET check "clippy, benchmark" cargo clippy --quiet --all-targets -- -D warnings
fi
