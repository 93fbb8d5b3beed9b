#!/usr/bin/env bash
# Usage: tools/test.sh [major...]     lint, then every kind of test on each of these versions of PostgreSQL
# A failure stops neither the other kinds nor the other versions; the last line is their sum.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || set -- "${ALL_MAJORS[@]}"
MAJORS=("$@")
cd "$ROOT"

ALL_KINDS=(model unit pg_test sql isolation client upgrade package)
# From which version pg_upgrade goes to which, where both are tested.
declare -A UPGRADES_FROM=([17]=16 [18]=15)
UPGRADES=()
for major in "${!UPGRADES_FROM[@]}"; do
  [[ " ${MAJORS[*]} " != *" $major "* || " ${MAJORS[*]} " != *" ${UPGRADES_FROM[$major]} "* ]] || UPGRADES+=("$major")
done
NO_UPGRADE='it takes two servers: PG="16 17" or PG="15 18"'
[ ${#UPGRADES[@]} -gt 0 ] || [[ " ${KINDS:-} " != *" upgrade "* ]] || die "KINDS=upgrade: $NO_UPGRADE"

# KINDS="sql isolation" runs only these.
read -ra KINDS <<<"${KINDS:-${ALL_KINDS[*]}}"
for kind in "${KINDS[@]}"; do
  [[ " ${ALL_KINDS[*]} " == *" $kind "* ]] || die "KINDS=$kind is none of ${ALL_KINDS[*]}"
done
LOGS=$CACHE/logs
declare -A PASSED FAILED TOOK
FAILURES=()

lock_cache
DRIVERS_TOO=1 tools/setup.sh "$@"
rm -rf "$LOGS"
mkdir -p "$LOGS"

tools/lint.sh "$@" || { echo "0 passed, 1 failed"; exit 1; }

WORK=$(mktemp -d)
chmod 755 "$WORK" # the servers' user must get to its folders in here
cleanup() {
  local pid data
  for pid in "$WORK"/*/*/postmaster.pid; do # ours, and pgrx's when it was interrupted
    [ -e "$pid" ] || continue
    data=${pid%/*}
    major=${data%/*} major=${major##*-}
    (cd / && as_server_user "$CACHE/pg/$major/bin/pg_ctl" -D "$data" -m fast -w -s stop) || true
  done
  rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# cargo pgrx builds the library with linker flags that the test build must not have, and without the features that
# the test dependencies add to shared crates. Both would compile pgrx twice for each version (30 s each, measured).
# The flags guard against linkers that drop pgrx's schema section; if one does, the install step fails and says so.
export CARGO_PGRX_DISABLE_GC_SECTIONS_WORKAROUND=1 PGRX_BUILD_FLAGS=--examples

on_extension() { CARGO_TARGET_DIR=$EXTENSION_TARGET "$@"; }

build() { on_extension cargo test --no-run --no-default-features --features "pg$1 pg_test"; }

# The test build links outside a server as long as a test reaches no function of the server: those are #[pg_test]s,
# which pgrx names pg_<test>.
unit() { on_extension cargo test --no-default-features --features "pg$1 pg_test" -- --skip ::pg_; }

pg_test() {
  local runas=() pgdata=$WORK/pg_test-$1
  mkdir "$pgdata"
  if is_root; then
    chown postgres "$pgdata"
    runas=(--runas postgres)
  fi
  on_extension cargo pgrx test "${runas[@]}" --pgdata "$pgdata" --no-default-features --features "pg$1" "pg$1" ::pg_
}

# After pg_test, which leaves a library with the test functions in the server.
install() {
  on_extension cargo pgrx install --no-default-features --features "pg$1" --pg-config "$(pg_config_of "$1")"
  # pgrx knows the steps between versions, not the install scripts of earlier ones.
  cp sql/install/duroxide_queue--*.sql "$("$(pg_config_of "$1")" --sharedir)/extension"
}

# $1: major; $2: program under pgxs; $3: input folder; $4: folder and ending of its tests
regress() {
  local tests=() file expected=() program out=$LOGS/pg$1-${2##*/}
  for file in "$3"/$4; do
    [ ! -e "$file" ] || { file=${file##*/}; tests+=("${file%.*}"); }
  done
  [ ${#tests[@]} -gt 0 ] || { echo "no test in $3/$4"; return 1; }
  [ "$1" -lt 16 ] || expected=(--expecteddir="$3") # before, expected/ was looked for in the input folder
  program=$(dirname "$("$(pg_config_of "$1")" --pgxs)")/../test/$2
  mkdir "$out"
  # These two look for libpq where they are, not where it is; another release's would do until it lacks something.
  LD_LIBRARY_PATH=$CACHE/pg/$1/lib "$program" --inputdir="$3" "${expected[@]}" --outputdir="$out" --bindir="$CACHE/pg/$1/bin" \
    --host=127.0.0.1 --port="$(cat "$WORK/server-$1/port")" --user=postgres --dbname="${2##*/}" \
    --load-extension=duroxide_queue "${tests[@]}" || { [ ! -e "$out/regression.diffs" ] || cat "$out/regression.diffs"; return 1; }
}
sql() { regress "$1" regress/pg_regress "$ROOT/tests/pg_regress" 'sql/*.sql'; }
isolation() { regress "$1" isolation/pg_isolation_regress "$ROOT/tests/isolation" 'specs/*.spec'; }

# The lease protocol as a checked model needs no server: once is enough.
model() { cd tests/client && CARGO_TARGET_DIR=$CLIENT_TARGET cargo test --test lease_model; }

# The oldest and the newest version get every client test. The others get them too when they are asked for alone or
# with TEST_ALL=1; else they are spared what takes longest: the validations on adopted queues, chaos, examples, the exporters,
# fuzz, parity and large values.
wants_everything() { [ -n "${TEST_ALL:-}" ] || [ "${#MAJORS[@]}" = 1 ] || [ "$1" = 15 ] || [ "$1" = 18 ]; }

client_tests() {
  local file name
  for file in tests/client/tests/*.rs tests/client/tests/*/main.rs; do
    case $file in
      */main.rs) name=$(basename "$(dirname "$file")") ;;
      *) name=$(basename "$file" .rs) ;;
    esac
    case $name in
      lease_model | pg_upgrade | packages) ;; # kinds of their own
      chaos | examples | exporters | fuzz | parity | large_values) ! wants_everything "$1" || echo "--test=$name" ;;
      *) echo "--test=$name" ;;
    esac
  done
}

client() {
  local run=(cargo test --no-fail-fast) tests suite=created
  ! cargo nextest --version >/dev/null 2>&1 || run=(cargo nextest run --no-fail-fast)
  ! wants_everything "$1" || suite=created,adopted
  mapfile -t tests < <(client_tests "$1")
  [[ " ${tests[*]} " != *" --test=examples "* ]] || tools/examples.sh || return # nothing to do the second time
  cd tests/client || return
  DUROXIDE_QUEUE_TEST_URL=$(cat "$WORK/server-$1/url") DUROXIDE_QUEUE_TEST_PG=$1 DUROXIDE_QUEUE_SUITE=$suite \
    DUROXIDE_QUEUE_TEST_PYTHON=$DRIVERS/python/bin/python DUROXIDE_QUEUE_TEST_NODE_MODULES=$DRIVERS/node/node_modules \
    DUROXIDE_QUEUE_TEST_EXAMPLES=$EXAMPLES DUROXIDE_QUEUE_TEST_PROMETHEUS=$DRIVERS/prometheus \
    CARGO_TARGET_DIR=$CLIENT_TARGET "${run[@]}" "${tests[@]}"
}

upgrade() {
  cd tests/client || return
  DUROXIDE_QUEUE_TEST_PG=$1 DUROXIDE_QUEUE_TEST_OLD_PG=${UPGRADES_FROM[$1]} CARGO_TARGET_DIR=$CLIENT_TARGET \
    cargo test --test pg_upgrade
}

# Once: what is packed is the same for every version. They hold the build of the tests, not a release build of minutes.
package() {
  cd tests/client || return
  DUROXIDE_QUEUE_TEST_PG=$1 PROFILE=dev CARGO_TARGET_DIR=$CLIENT_TARGET cargo test --test packages
}

# Reads a runner's log, prints "passed failed": lines of cargo test, of nextest, of pg_regress before 16 and since.
count() {
  sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
    /^test result:/ && !summary { passed += $4; failed += $6 }
    /^ *Summary \[/ {
      passed = failed = 0; summary = 1 # and not what single tests print, before it or after
      for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) passed += $(i-1); if ($i ~ /^(failed|timed)/) failed += $(i-1) }
    }
    /^(test|ok|not ok) .* ms$/ { if (/^not ok| FAILED /) failed++; else passed++ }
    END { print passed + 0, failed + 0 }'
}

# $1: step (a function above), $2: major. 'set -e' does not hold inside: callers look at the status. Steps that are no kind of test count only when they fail.
step() {
  local log=$LOGS/pg$2-$1.log begin=$SECONDS status=0 passed failed counts
  printf 'pg%s %s: ' "$2" "$1"
  ("$1" "$2") >"$log" 2>&1 </dev/null || status=$?
  read -r passed failed < <(count "$log")
  counts="$passed passed, $failed failed"
  case " ${KINDS[*]} " in
    *" $1 "*)
      [ "$((passed + failed))" != 0 ] || { counts="ran no test"; status=1; }
      ;;
    *)
      passed=0 failed=0 counts='done'
      [ "$status" = 0 ] || counts=failed
      ;;
  esac
  # A runner that fails without naming a test (it did not compile, it crashed) failed once.
  [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
  [ "$failed" = 0 ] || { FAILURES+=("$log"); status=1; }
  PASSED[$2,$1]=$passed FAILED[$2,$1]=$failed TOOK[$2,$1]=$((SECONDS - begin))
  echo "$counts, $((SECONDS - begin)) s"
  return "$status"
}

server() { tools/server.sh start "$1" "$WORK/server-$1"; }

# Only the kinds asked for.
try() { [[ " ${KINDS[*]} " != *" $1 "* ]] || step "$1" "$2" || true; }

try model "$1"
for major in "$@"; do
  step build "$major" || continue
  try unit "$major"
  try pg_test "$major"
  step install "$major" || continue
  step server "$major" || continue
  try sql "$major"
  try isolation "$major"
  try client "$major"
  tools/server.sh stop "$WORK/server-$major"
  cp "$WORK/server-$major/log" "$LOGS/pg$major-postgres.log"
done

for major in "${UPGRADES[@]}"; do try upgrade "$major"; done
[ ${#UPGRADES[@]} -gt 0 ] || echo "upgrade: not run, $NO_UPGRADE"
try package "${MAJORS[-1]}"

for log in "${FAILURES[@]}"; do
  printf '\n==> %s (its end)\n' "$log"
  tail -n 60 "$log"
done

total_passed=0 total_failed=0
printf '\n%-8s' version
printf '%-20s' "${KINDS[@]}"
for major in "$@"; do
  printf '\n%-8s' "$major"
  for kind in "${KINDS[@]}"; do
    cell='not run'
    [ -z "${PASSED[$major,$kind]:-}" ] ||
      cell="${PASSED[$major,$kind]} ok, ${FAILED[$major,$kind]} bad, ${TOOK[$major,$kind]} s"
    printf '%-20s' "$cell"
  done
done
echo
for n in "${PASSED[@]}"; do total_passed=$((total_passed + n)); done
for n in "${FAILED[@]}"; do total_failed=$((total_failed + n)); done
[ ${#FAILURES[@]} = 0 ] || printf 'failed, see: %s\n' "${FAILURES[@]}"
echo "$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ]
