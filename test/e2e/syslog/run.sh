#!/usr/bin/env bash
# e2e/syslog/run.sh [CASE...]: the syslog connector in the real binary, with senders that others wrote, over UDP, TCP and TLS. Needs no broker.
# Environment: FRAZIL_BIN, FRAZIL_SYSLOG_SH (clients; default test/peers/syslog_clients.sh), FRAZIL_SYSLOG_PORT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export FRAZIL_BIN=${FRAZIL_BIN:-$here/../../../build/frazil} FRAZIL_SYSLOG_SH=${FRAZIL_SYSLOG_SH:-$here/../../peers/syslog_clients.sh}
bash "$FRAZIL_SYSLOG_SH" up
exec python3 "$here/syslog.py" "$@"
