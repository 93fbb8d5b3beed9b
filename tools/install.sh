#!/usr/bin/env bash
# Usage: tools/install.sh <major | path of pg_config>     release build of the extension into that server
# With SUDO=1 the build runs as you and only the copying is done with sudo.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

lock_cache
[ -n "${1:-}" ] || die "Which server? make install PG_CONFIG=/path/to/pg_config${FOUND_PG_CONFIG:+ (there is $FOUND_PG_CONFIG)}"
case $1 in
  */*)
    PG_CONFIG=$1 tools/setup.sh
    # Builds against this server's own headers, and rebuilds when the last ones were another's.
    export PGRX_PG_CONFIG_PATH=$1
    ;;
  *) PG_CONFIG='' tools/setup.sh "$1" ;;
esac
pg_config=$(pg_config_of "$1")
major=$(major_of "$pg_config")

# Before the build, not minutes later.
copy=()
dirs=("$("$pg_config" --pkglibdir)" "$("$pg_config" --sharedir)/extension")
for dir in "${dirs[@]}"; do
  [ ! -w "$dir" ] || continue
  [ -n "${SUDO:-}" ] || die "You may not write to $dir, where this server looks for extensions.
Either run 'make install PG_CONFIG=$pg_config SUDO=1', which copies three files there with sudo,
or leave PG_CONFIG away: 'make demo' then brings its own server and changes nothing outside $CACHE."
  copy=(--sudo)
done

say "install: release build for PostgreSQL $major (a minute or two the first time)"
CARGO_TARGET_DIR=$EXTENSION_TARGET cargo pgrx install --release "${copy[@]}" \
  --no-default-features --features "pg$major" --pg-config "$pg_config" >/dev/null # errors and progress are on stderr
say "install: duroxide_queue is in ${dirs[*]}"
