#!/usr/bin/env bash
# interop/run.sh: strangers and frazil on the same files, manifests, catalogs and tables: PyIceberg, pyarrow, DuckDB; Java makes tables. Local, in Glue, in S3 Tables.
# FRAZIL_INTEROP_VERIFY=1 (long): Java also reads everything, verifies files against manifests, and works on our catalogs.
# Environment: FRAZIL_BIN (build/frazil), FRAZIL_BUILD (build); KEEP=1 leaves the directory.
set -uo pipefail
cd "$(dirname "$0")/../.."
B=${FRAZIL_BUILD:-build}
export FRAZIL_BIN=${FRAZIL_BIN:-$(realpath -m "$B/frazil")}
FRAZIL_TEST_DIR=$(mktemp -d /tmp/frazil-interop.XXXXXX)
export FRAZIL_TEST_DIR
trap '[ -n "${KEEP:-}" ] || rm -rf "$FRAZIL_TEST_DIR"' EXIT
READERS=$PWD/test/peers/readers.sh
TOOLS=$B/test/tools
CATALOG_TESTS="$B/unit/catalog/test_catalog $B/unit/catalog/test_race $B/unit/catalog/test_threads"
make -s "B=$B" "$TOOLS/manifest_tool" "$TOOLS/catalog_tool" "$TOOLS/parquet_write" "$TOOLS/store_tool" "$TOOLS/aws_who" $CATALOG_TESTS || exit 1
bash "$READERS" up || exit 1
failed=()

# part NAME COMMAND...: one line when it succeeds, all of its output when not
part() {
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$FRAZIL_TEST_DIR/$name.log" 2>&1; then echo "ok     $name ($(grep -c '^ok' "$FRAZIL_TEST_DIR/$name.log") checks, $((SECONDS - start)) s)"
    else
        tail -n 40 "$FRAZIL_TEST_DIR/$name.log"
        echo "FAILED $name"
        failed+=("$name")
    fi
}
python() { bash "$READERS" python "$@"; }

part manifests python test/interop/manifest_check.py "$TOOLS/manifest_tool"
part catalog python test/interop/catalog_pyiceberg.py "$TOOLS/catalog_tool"
part catalog-postgres env FRAZIL_CATALOG_TESTS="$CATALOG_TESTS" bash test/interop/postgres.sh "$TOOLS/catalog_tool" "$FRAZIL_TEST_DIR/postgres"
part parquet python test/interop/parquet_roundtrip.py "$TOOLS/parquet_write" "$FRAZIL_TEST_DIR/parquet"
part credentials python test/interop/aws_chain.py "$TOOLS/aws_who"
part s3 env FRAZIL_S3_LARGE="${FRAZIL_INTEROP_VERIFY:+5368709120}" bash test/interop/s3.sh "$TOOLS/store_tool" "$FRAZIL_TEST_DIR/s3"
part append python test/interop/append.py
part glue bash test/interop/glue.sh
part rest bash test/interop/rest.sh
if [ -n "${FRAZIL_INTEROP_VERIFY:-}" ]; then
    part catalog-java bash test/interop/java.sh catalog "$TOOLS/catalog_tool"
    part manifests-java bash test/interop/java.sh manifests "$TOOLS/manifest_tool"
    part parquet-java bash test/interop/java.sh parquet "$FRAZIL_TEST_DIR/parquet"
fi
echo "interop: failed parts: ${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
