#!/usr/bin/env bash
# e2e/run.sh [NAME...]: every test/e2e/NAME.py and NAME/run.sh against the real binary and one broker, which it starts and stops. Without names: all.
# Environment: FRAZIL_KAFKA_SH, FRAZIL_READERS_SH (default: test/peers), FRAZIL_BROKER and FRAZIL_BROKER_DIR (one that runs already), FRAZIL_E2E_PORT, FRAZIL_BIN;
#              FRAZIL_LONG=1 also runs what takes minutes; KEEP=1 leaves the directories.
set -uo pipefail
cd "$(dirname "$0")/../.."
export FRAZIL_KAFKA_SH=${FRAZIL_KAFKA_SH:-$PWD/test/peers/kafka.sh} FRAZIL_BIN=${FRAZIL_BIN:-$PWD/build/frazil}
READERS=${FRAZIL_READERS_SH:-$PWD/test/peers/readers.sh}
FRAZIL_TEST_DIR=$(mktemp -d /tmp/frazil-e2e.XXXXXX)
export FRAZIL_TEST_DIR
finish() {
    [ -z "${own:-}" ] || bash "$FRAZIL_KAFKA_SH" down "$FRAZIL_BROKER_DIR" >/dev/null 2>&1
    if [ -n "${KEEP:-}" ]; then echo "kept: $FRAZIL_TEST_DIR"; else rm -rf "$FRAZIL_TEST_DIR"; fi
}
trap finish EXIT
if [ -z "${FRAZIL_BROKER:-}" ]; then
    own=1
    export FRAZIL_BROKER=127.0.0.1:${FRAZIL_E2E_PORT:-29492} FRAZIL_BROKER_DIR=$FRAZIL_TEST_DIR/kafka
    bash "$FRAZIL_KAFKA_SH" up "$FRAZIL_BROKER_DIR" "${FRAZIL_BROKER#*:}" >"$FRAZIL_TEST_DIR/kafka.log" 2>&1 || { tail "$FRAZIL_TEST_DIR/kafka.log"; exit 1; }
fi
python=(python3)
[ -r "$READERS" ] && python=(bash "$READERS" python)

one() { # NAME
    if [ -r "test/e2e/$1/run.sh" ]; then bash "test/e2e/$1/run.sh"
    else "${python[@]}" "test/e2e/$1.py"; fi
}
names=("$@")
[ $# -gt 0 ] || for f in test/e2e/*.py test/e2e/*/run.sh; do
    name=${f#test/e2e/} name=${name%/run.sh}
    names+=("${name%.py}")
done
failed=()
for name in "${names[@]}"; do
    echo "-- e2e: $name"
    one "$name" || failed+=("$name")
done
echo "e2e: ${#names[@]} parts, failed: ${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
