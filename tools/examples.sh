#!/usr/bin/env bash
# Usage: tools/examples.sh     builds the workers in examples/ that have to be built, outside the checkout
# They are in $EXAMPLES then (tools/env.sh), with the JDBC driver beside them. tools/setup.sh has installed what it takes.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT/examples"

mkdir -p "$EXAMPLES"
cargo build --quiet --locked --manifest-path rust/Cargo.toml --target-dir "$EXAMPLES/rust"
# Debian's packages lie in a GOPATH; with one, no module is looked for on the network.
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$EXAMPLES/go-build go build -o "$EXAMPLES/go-worker" go/*.go
ln -sfn "$JDBC_JAR" "$EXAMPLES/postgresql.jar"
