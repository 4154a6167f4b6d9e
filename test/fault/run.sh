#!/usr/bin/env bash
# fault/run.sh [WALKS [SEED]]: random walks over the commit protocol under ASan and UBSan; then the same with writers that do not compare positions, which must fail.
set -uo pipefail
cd "$(dirname "$0")/../.."
WALKS=${1:-300} SEED=${2:-$RANDOM}
make SAN=address build-address/test/fault/protocol_walk || exit 1
echo "protocol_walk: $WALKS walks, seed $SEED"
build-address/test/fault/protocol_walk "$WALKS" "$SEED" || exit 1
if FRAZIL_WALK_BLIND=1 build-address/test/fault/protocol_walk "$WALKS" "$SEED" >/dev/null 2>&1; then
    echo "protocol_walk: blind writers were not caught"
    exit 1
fi
echo "protocol_walk: blind writers are caught"
