#!/usr/bin/env bash
# Usage: tools/clean.sh     removes build output and logs; servers and tools stay, they cost a download
set -euo pipefail
. "$(dirname "$0")/env.sh"

lock_cache
rm -rf "$EXTENSION_TARGET" "$CLIENT_TARGET" "$EXAMPLES" "$CACHE/logs" "$ROOT/build" "$ROOT/dist"
say "Build output is gone. Downloaded servers and tools are in $CACHE; remove that folder to be rid of everything."
