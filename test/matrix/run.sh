#!/usr/bin/env bash
# matrix/run.sh [--short | CELL...]: the commit matrix (matrix.py) over peers that it starts and stops, with the real binary, and with one that compares no
# positions, which the matrix has to find out. --short: the part that CI runs. CELL: those cells, with the real binary only.
# Environment: FRAZIL_BIN (build/frazil), FRAZIL_BLIND_BIN (else it is built into build-blind), FRAZIL_MATRIX_PORT (first of ten ports, 29600),
#              FRAZIL_MATRIX_JOBS (cells at a time, 3), FRAZIL_MATRIX_OUTAGE (seconds, 60), FRAZIL_MATRIX_READERS (duckdb,java: they read the tables too);
#              KEEP=1 leaves the directories.
set -uo pipefail
cd "$(dirname "$0")/../.."
PEERS=$PWD/test/peers
PORT=${FRAZIL_MATRIX_PORT:-29600}
DIR=$(mktemp -d /tmp/frazil-matrix.XXXXXX)
export FRAZIL_BIN=${FRAZIL_BIN:-$PWD/build/frazil} FRAZIL_TEST_DIR=$DIR/cells FRAZIL_KAFKA_SH=$PEERS/kafka.sh FRAZIL_BROKER=127.0.0.1:$PORT FRAZIL_BROKER_DIR=$DIR/kafka \
    FRAZIL_PG_PORT=$((PORT + 3)) S3_ENDPOINT=http://127.0.0.1:$((PORT + 4)) FRAZIL_REST=http://127.0.0.1:$((PORT + 5)) FRAZIL_NESSIE= \
    AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test KAFKA_HEAP=384m KAFKA_CONFIG=$'auto.create.topics.enable=true\nnum.partitions=2'
unset AWS_PROFILE AWS_SESSION_TOKEN
mkdir "$FRAZIL_TEST_DIR"
finish() {
    bash "$PEERS/iceberg_rest.sh" down "$DIR/rest"
    bash "$PEERS/iceberg_rest.sh" down "$DIR/nessie"
    bash "$PEERS/moto.sh" down "$DIR/moto"
    bash "$PEERS/postgres.sh" down "$DIR/postgres"
    bash "$PEERS/kafka.sh" down "$DIR/kafka"
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
peer() { # NAME COMMAND...: false when there is what it needs only elsewhere (77)
    local name=$1 rc=0
    shift
    bash "$@" >"$DIR/$name.log" 2>&1 || rc=$?
    [ $rc != 0 ] || return 0
    tail "$DIR/$name.log"
    [ $rc != 77 ] || return 1
    echo "matrix: $name did not come up"
    exit 1
}
echo "-- the proxy itself"
python3 test/tools/test_proxy.py || exit 1
if [ -z "${FRAZIL_BLIND_BIN:-}" ]; then
    export FRAZIL_BLIND_BIN=$PWD/build-blind/frazil
    make -s -j"$(nproc)" B="$PWD/build-blind" OPT='-O1 -DFRAZIL_TEST_BLIND' "$FRAZIL_BLIND_BIN" || exit 1
fi
peer kafka "$PEERS/kafka.sh" up "$DIR/kafka" "$PORT"
peer postgres "$PEERS/postgres.sh" up "$DIR/postgres" "$FRAZIL_PG_PORT"
peer moto "$PEERS/moto.sh" up "$DIR/moto" $((PORT + 4))
peer bucket "$PEERS/moto.sh" bucket "$DIR/moto" lake
peer rest "$PEERS/iceberg_rest.sh" up "$DIR/rest" $((PORT + 5)) s3://lake/rest
if [ "${1:-}" != --short ] && REST_SERVER=nessie REST_AUTH=1 peer nessie "$PEERS/iceberg_rest.sh" up "$DIR/nessie" $((PORT + 6)) s3://lake/nessie; then
    export FRAZIL_NESSIE=http://127.0.0.1:$((PORT + 6)) FRAZIL_NESSIE_TOKEN=$DIR/token.sh
    echo "exec bash '$PEERS/iceberg_rest.sh' token '$DIR/nessie'" >"$DIR/token.sh"
fi
matrix() { bash "$PEERS/readers.sh" python test/matrix/matrix.py --jobs "${FRAZIL_MATRIX_JOBS:-3}" "$@"; }
failed=0
echo "-- the matrix"
matrix --outage "${FRAZIL_MATRIX_OUTAGE:-60}" ${FRAZIL_MATRIX_READERS:+--readers "$FRAZIL_MATRIX_READERS"} "$@" || failed=1
[ $# = 0 ] || [ "$1" = --short ] || exit $failed
echo "-- the same without the comparison of positions"
[ $# = 0 ] || set -- --short lost own-conflict
FRAZIL_BIN=$FRAZIL_BLIND_BIN matrix --outage 5 --blind "$@" || failed=1
exit $failed
