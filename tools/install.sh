#!/usr/bin/env bash
# Usage: tools/install.sh [--remove] <major | path of pg_config>     release build of the extension into that server
# With SUDO=1 the build runs as you and only the copying is done with sudo. DESTDIR=dir puts the files below that folder.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

remove=
[ "${1:-}" != --remove ] || { remove=1; shift; }
[ -n "${1:-}" ] || die "Which server? make ${remove:+un}install PG_CONFIG=/path/to/pg_config${FOUND_PG_CONFIG:+ (there is $FOUND_PG_CONFIG)}"
pg_config=$(pg_config_of "$1")
as_writer=()

# Where the server looks; sets the variables of the functions below.
look() {
  local dir
  lib=${DESTDIR:-}$("$pg_config" --pkglibdir)
  extension=${DESTDIR:-}$("$pg_config" --sharedir)/extension
  [ -z "${DESTDIR:-}" ] || mkdir -p "$lib" "$extension"
  for dir in "$lib" "$extension"; do
    [ ! -w "$dir" ] || continue
    [ -n "${SUDO:-}" ] || die "You may not write to $dir, where this server looks for extensions.
Either run 'make ${remove:+un}install PG_CONFIG=$pg_config SUDO=1', which does no more than that with sudo,
or leave PG_CONFIG away: 'make demo' then brings its own server and changes nothing outside $CACHE."
    as_writer=(sudo)
  done
}

if [ -n "$remove" ]; then
  look
  "${as_writer[@]}" rm -f "$lib/duroxide_queue.so" "$extension"/duroxide_queue.control "$extension"/duroxide_queue--*.sql
  say "uninstall: duroxide_queue is no longer in $lib and $extension"
  exit
fi

[ ! -x "$pg_config" ] || look # before the build, not minutes later
built=$(tools/build.sh "$1")
look
# 'install' makes new files: a server that has the old library loaded keeps it.
"${as_writer[@]}" install -m 755 "$built/lib/duroxide_queue.so" "$lib"
"${as_writer[@]}" install -m 644 "$built"/extension/* "$extension"
say "install: duroxide_queue $VERSION is in $lib and $extension"
