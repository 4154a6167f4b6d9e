#!/usr/bin/env bash
# interop/postgres.sh TOOL DIR [CASE...]: catalog_postgres.py with a PostgreSQL server of its own in DIR; the driver for Java comes once.
# FRAZIL_CATALOG_TESTS: unit tests of the catalog room (programs) that run on it first.
. "$(dirname "$0")/../peers/lib.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || help
tool=$(realpath "$1") dir=$2
shift 2
bash "$PEERS/readers.sh" up
fetch_jdbc() { maven org.postgresql:postgresql:42.7.13; }
cached postgres-jdbc fetch_jdbc
bash "$PEERS/postgres.sh" up "$dir" "${FRAZIL_POSTGRES_PORT:-25432}"
trap 'bash "$PEERS/postgres.sh" down "$dir"' EXIT
CLASSPATH="$CACHE/iceberg-java-1.10.1/*:$CACHE/postgres-jdbc/*"
mkdir -p "$dir/classes"
javac -nowarn -proc:none -cp "$CLASSPATH" -d "$dir/classes" "$HERE/CatalogShared.java"
export CLASSPATH="$dir/classes:$CLASSPATH"
# what holds for every SQL catalog, on this one
for t in ${FRAZIL_CATALOG_TESTS:-}; do
    FRAZIL_TEST_SQL_URI="postgresql://frazil:frazil@127.0.0.1:$(cat "$dir/port")/catalog" "$t" >"$dir/unit.log" 2>&1 || { tail -n 40 "$dir/unit.log" >&2; fail "$t failed on PostgreSQL"; }
    echo "ok   ${t##*/}"
done
PYTHONPATH=$HERE/../tools bash "$PEERS/readers.sh" python "$HERE/catalog_postgres.py" "$tool" "$dir" "$@"
