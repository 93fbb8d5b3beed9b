#!/usr/bin/env bash
# Usage: tools/dist.sh     the last commit as a PGXN distribution: dist/duroxide_queue-<version>.zip
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"

# The checkout may be another user's, as it is in a container.
git() { command git -c safe.directory="$ROOT" "$@"; }

[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$ROOT" ] || die "make dist packs the last commit: it needs a checkout with git."
[ -z "$(git status --porcelain)" ] || say "dist: what is not committed is left out"
VERSION=$(git show HEAD:Cargo.toml | sed -n '0,/^version = /s/^version = "\(.*\)"$/\1/p')
mkdir -p dist
git archive --format=zip --prefix="duroxide_queue-$VERSION/" --output="dist/duroxide_queue-$VERSION.zip" HEAD
echo "dist/duroxide_queue-$VERSION.zip"
