#!/usr/bin/env bash
# Usage: tools/build.sh <major | path of pg_config>     what that server needs of us, into build/, unless it is there
# A release build; with PROFILE=dev the quicker one that the tests use. Prints the folder.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
PROFILE=${PROFILE:-release}

# What a build depends on, so that 'sudo make install' after 'make' copies and needs no Rust.
stamp() {
  echo "$PROFILE $1 $("$1" --version)"
  find src sql Cargo.toml Cargo.lock duroxide_queue.control -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
}
folder() { echo "build/pg$(major_of "$1")$([ "$PROFILE" = release ] || echo "-$PROFILE")"; }
is_built() { [ -x "$1" ] && cmp -s <(stamp "$1") "$(folder "$1")/stamp"; }

# Debian's copyright file names what is linked in.
crates() {
  cargo tree --locked --edges normal,no-proc-macro --prefix none --format '{p} ({l})' --no-default-features --features "pg$1" |
    sed 's/ (\*)$//; s/ ([^()]*\/[^()]*) (\(.*\))$/ (\1)/' | grep -v '^duroxide_queue ' | LC_ALL=C sort -u
}

[ -n "${1:-}" ] || die "Which server? make PG_CONFIG=/path/to/pg_config${FOUND_PG_CONFIG:+ (there is $FOUND_PG_CONFIG)}"
pg_config=$(pg_config_of "$1")
! is_built "$pg_config" || { folder "$pg_config"; exit; }

lock_cache
case $pg_config in
  "$CACHE"/pg/*) PG_CONFIG='' tools/setup.sh "$(basename "${pg_config%/bin/pg_config}")" ;;
  *)
    PG_CONFIG=$pg_config tools/setup.sh
    # Builds against this server's own headers, and rebuilds when the last ones were another's.
    export PGRX_PG_CONFIG_PATH=$pg_config
    ;;
esac
major=$(major_of "$pg_config")
profile=()
[ "$PROFILE" = release ] || profile=(--profile "$PROFILE")

say "build: $PROFILE build for PostgreSQL $major (a minute or two the first time)"
# Made aside and renamed: what is there is whole.
built=$(folder "$pg_config")
stage=build/.part-${built#build/}
rm -rf "$stage"
mkdir -p "$stage/tree" "$stage/lib" "$stage/extension"
CARGO_TARGET_DIR=$EXTENSION_TARGET cargo pgrx package "${profile[@]}" --out-dir "$stage/tree" \
  --no-default-features --features "pg$major" --pg-config "$pg_config" >/dev/null # errors and progress are on stderr
# It has laid the files out under the server's own path.
find "$stage/tree" -name '*.so' -exec mv -t "$stage/lib" {} +
find "$stage/tree" \( -name '*.control' -o -name '*.sql' \) -exec mv -t "$stage/extension" {} +
rm -rf "$stage/tree"
# pgrx knows the steps between versions, not the install scripts of earlier ones.
cp sql/install/duroxide_queue--*.sql "$stage/extension"
crates "$major" >"$stage/crates"
stamp "$pg_config" >"$stage/stamp"
rm -rf "$built"
mv "$stage" "$built"
echo "$built"
