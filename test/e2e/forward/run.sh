#!/usr/bin/env bash
# e2e/forward/run.sh [CASE...]: the forward connector in the real binary, with clients that others wrote, and killed after each answer. Needs no broker.
# Environment: FRAZIL_BIN, FRAZIL_FORWARD_SH (clients; default test/peers/forward_clients.sh), FRAZIL_FORWARD_PORT, FRAZIL_FORWARD_ROUNDS (kills; default 20).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export FRAZIL_BIN=${FRAZIL_BIN:-$here/../../../build/frazil} FRAZIL_FORWARD_SH=${FRAZIL_FORWARD_SH:-$here/../../peers/forward_clients.sh}
bash "$FRAZIL_FORWARD_SH" up
exec python3 "$here/forward.py" "$@"
