#!/usr/bin/env bash
# Usage: tools/server.sh start <major | path of pg_config> <dir>     a throwaway server with all its files in <dir>
#        tools/server.sh standby <dir of a server> <dir>         another that streams from it
#        tools/server.sh stop <dir>
# SERVER_SETTINGS: lines for its postgresql.conf, which win over those below.
# After start, <dir>/url and <dir>/port say where it is (superuser postgres, no password, loopback only).
set -euo pipefail
. "$(dirname "$0")/env.sh"

free_port() {
  local port
  # Below the range that the kernel hands out for outgoing connections.
  for _ in {1..50}; do
    port=$((RANDOM % 12000 + 20000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  die "no free port found"
}

# Goes to the server's folder, with its programs in $bin; $1: their folder, $2: its own.
enter() {
  bin=$1
  mkdir -p "$2"
  dir=$(cd "$2" && pwd -P)
  [ ${#dir} -le 80 ] || die "$dir is too long for the name of a socket"
  ! is_root || chown postgres "$dir"
  cd "$dir" # the server's user may not be allowed into the caller's
  as_server_user test -x "$bin/postgres" || die "user $(as_server_user id -un) cannot run $bin/postgres: check the rights of the folders above it"
  echo "$bin" >bin
}

launch() {
  local port
  # Somebody may take the port between our look and the server's start.
  for _ in {1..5}; do
    port=$(free_port)
    # The server outlives us: it must not keep our caller's lock (9) or output.
    if as_server_user "$bin/pg_ctl" -D data -o "-p $port" -l "$dir/log" -w -s start >pg_ctl.log 2>&1 </dev/null 9>&-; then
      echo "$port" >port
      echo "postgres://postgres@127.0.0.1:$port/postgres" >url
      cat url
      return
    fi
    grep -q 'could not bind' log 2>/dev/null || break
  done
  tail -n 20 pg_ctl.log log >&2 2>/dev/null || true
  die "the server in $dir did not start"
}

start() {
  local bin dir
  enter "$("$(pg_config_of "$1")" --bindir)" "$2"
  as_server_user "$bin/initdb" -D data -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >initdb.log 2>&1 || {
    tail -n 20 initdb.log >&2
    die "initdb failed"
  }
  cat >>data/postgresql.conf <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
max_connections = 300
max_prepared_transactions = 10
fsync = off
full_page_writes = off
log_line_prefix = '%m [%p] %q%d %a: '
${SERVER_SETTINGS:-}
CONF
  launch
}

standby() {
  local bin dir primary
  primary=$(cat "$1/port")
  enter "$(cat "$1/bin")" "$2"
  as_server_user "$bin/pg_basebackup" -h 127.0.0.1 -p "$primary" -U postgres -D data -c fast --no-sync >basebackup.log 2>&1 || {
    tail -n 20 basebackup.log >&2
    die "pg_basebackup failed"
  }
  # Written by hand: pg_basebackup -R uses options that another release's libpq does not know.
  as_server_user touch data/standby.signal
  cat >>data/postgresql.conf <<CONF
unix_socket_directories = '$dir'
primary_conninfo = 'host=127.0.0.1 port=$primary user=postgres'
CONF
  launch
}

stop() {
  [ -e "$1/data/postmaster.pid" ] || return 0
  cd "$1"
  as_server_user "$(cat bin)/pg_ctl" -D data -m fast -w -s stop
}

case "${1:-}/$#" in
  start/3) start "$2" "$3" ;;
  standby/3) standby "$2" "$3" ;;
  stop/2) stop "$2" ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac
