#!/usr/bin/env bash
# kill/inputs.sh [ROUNDS [SEED]]: kill -9 during load over all inputs (inputs.py); it starts an imitation of AWS when it needs one. 300 rounds and more also check the hits per point.
# Environment: ROUNDS (40), FRAZIL_KILL_KINDS (local,damage,glue,local), FRAZIL_KILL_MOTO_PORT, FRAZIL_READERS_SH (default: test/peers), FRAZIL_BIN; KEEP=1 leaves the directory.
set -uo pipefail
cd "$(dirname "$0")/../.."
READERS=${FRAZIL_READERS_SH:-$PWD/test/peers/readers.sh}
DIR=$(mktemp -d /tmp/frazil-inputs.XXXXXX)
finish() {
    bash test/peers/moto.sh down "$DIR/moto" >/dev/null 2>&1
    if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap finish EXIT
python=(python3)
[ -r "$READERS" ] && python=(bash "$READERS" python)
grpc=$(bash test/peers/otlp_clients.sh packages 2>"$DIR/otlp.log") || grpc=
PYTHONPATH=$grpc${PYTHONPATH:+:$PYTHONPATH} "${python[@]}" test/kill/inputs.py --rounds "${1:-${ROUNDS:-40}}" --seed "${2:-$RANDOM}" --dir "$DIR" --kinds "${FRAZIL_KILL_KINDS:-local,damage,glue,local}" \
    --moto "${FRAZIL_KILL_MOTO_PORT:-29398}"
