#!/usr/bin/env bash
# e2e/firehose/run.sh [CASE...]: the firehose connector in the real binary, with AWS's own SDKs, and killed after each answer. Needs no broker.
# Environment: FRAZIL_BIN, FRAZIL_FIREHOSE_SH (clients; default test/peers/firehose_clients.sh), FRAZIL_FIREHOSE_PORT, FRAZIL_FIREHOSE_ROUNDS (kills; default 10).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export FRAZIL_BIN=${FRAZIL_BIN:-$here/../../../build/frazil} FRAZIL_FIREHOSE_SH=${FRAZIL_FIREHOSE_SH:-$here/../../peers/firehose_clients.sh}
bash "$FRAZIL_FIREHOSE_SH" up
exec bash "$FRAZIL_FIREHOSE_SH" python "$here/firehose.py" "$@"
