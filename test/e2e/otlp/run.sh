#!/usr/bin/env bash
# e2e/otlp/run.sh [CASE...]: the otlp connector in the real binary, with clients that others wrote, and killed after each answer. Needs no broker.
# Environment: FRAZIL_BIN, FRAZIL_OTLP_SH (clients; default test/peers/otlp_clients.sh), FRAZIL_OTLP_ROUNDS (kills; default 20).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export FRAZIL_BIN=${FRAZIL_BIN:-$here/../../../build/frazil} FRAZIL_OTLP_SH=${FRAZIL_OTLP_SH:-$here/../../peers/otlp_clients.sh}
bash "$FRAZIL_OTLP_SH" up
exec python3 "$here/otlp.py" "$@"
