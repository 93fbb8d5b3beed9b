#!/usr/bin/env bash
# Usage: tools/package.sh [major... | path of pg_config]     a Debian package for each of these versions, in dist/
# Built against the headers of our own servers, or of pg_config's. The files go where Debian's servers look, and those of
# the PostgreSQL project's packages for Debian and Ubuntu.
# MAINTAINER="Name <address>": who answers for the package.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- "${ALL_MAJORS[@]}"
cd "$ROOT"
MAINTAINER=${MAINTAINER:-The duroxide_queue authors <maintainers@duroxide-queue.invalid>}

command -v dpkg-deb dpkg-shlibdeps strip >/dev/null ||
  die "make package makes packages for Debian and Ubuntu, on them: apt-get install dpkg-dev binutils"
# The times in a package are those of the source, so that the same source makes the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory="$ROOT" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
lock_cache
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# $1: library. The packages that it needs, by the symbols that it takes from them.
needs() {
  printf 'Source: duroxide-queue\n\nPackage: %s\nArchitecture: any\n' "$name" >"$WORK/debian/control"
  (cd "$WORK" && dpkg-shlibdeps -O "$1") | sed -n 's/^shlibs:Depends=//p'
}

copyright() {
  cat <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: duroxide_queue
Comment: The library has these crates linked in, each under its own license:
$(sed 's/^/ /' "$built/crates")

Files: *
Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)
License: Expat
$(sed -n '/^Permission/,$p' LICENSE | sed 's/^$/./; s/^/ /')
TEXT
}

changelog() {
  cat <<TEXT
$name ($VERSION-1) unstable; urgency=medium

  * Version $VERSION; changelog.gz says what is new.

 -- $MAINTAINER  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
TEXT
}

control() {
  cat <<TEXT
Package: $name
Version: $VERSION-1
Architecture: $architecture
Maintainer: $MAINTAINER
Installed-Size: $(du -k -s --apparent-size "$root/usr" | cut -f1)
Depends: postgresql-$major, $depends
Section: database
Priority: optional
Description: work queues of durable execution, inside PostgreSQL $major
 duroxide_queue keeps the queues of durable execution in the database: workflows
 that survive crashes because each of their steps is stored. Dispatchers in any
 language call SQL functions to claim an instance under a lease, get its history
 and messages in one round trip, and acknowledge, abandon or renew it.
 .
 The Rust runtime duroxide runs on it through the unmodified crate duroxide-pg.
TEXT
}

umask 022
for server in "$@"; do
  built=$(tools/build.sh "$server")
  major=$(major_of "$(pg_config_of "$server")")
  name=postgresql-$major-duroxide-queue
  architecture=$(dpkg --print-architecture)
  root=$WORK/debian/$name # where dpkg-shlibdeps expects it
  library=$root/usr/lib/postgresql/$major/lib/duroxide_queue.so
  install -D -m 644 "$built/lib/duroxide_queue.so" "$library"
  strip --strip-unneeded --remove-section=.comment --remove-section=.note "$library"
  install -D -m 644 -t "$root/usr/share/postgresql/$major/extension" "$built"/extension/*
  doc=$root/usr/share/doc/$name
  mkdir -p "$doc" "$root/DEBIAN"
  depends=$(needs "$library")

  copyright >"$doc/copyright"
  gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
  changelog | gzip -9n >"$doc/changelog.Debian.gz"
  control >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

  mkdir -p dist
  package=dist/${name}_$VERSION-1_$architecture.deb
  dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
  say "package: $package"
done
