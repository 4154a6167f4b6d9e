#!/usr/bin/env bash
# All layers that CI runs, in order; each prints its own lines and a closing one here. Arguments: names of layers.
# Long layers (soak.sh) are not among them.
set -uo pipefail
cd "$(dirname "$0")/.."
export FRAZIL_CACHE=${FRAZIL_CACHE:-$HOME/.cache/frazil}
ALL="style build unit asan tsan fuzz interop e2e matrix oracle kill"
failed=() began=$SECONDS

layer_style() { python3 test/check_includes.py; }
layer_build() { make -j"$(nproc)" && sh test/check_docs.sh; }
layer_unit() { make -j"$(nproc)" tests && make unit; }
layer_asan() { make -j"$(nproc)" SAN=address tests && make SAN=address unit && bash test/fault/run.sh; }
layer_tsan() { bash test/tsan.sh; }
layer_fuzz() { bash test/fuzz/replay.sh; }
layer_interop() { bash test/interop/run.sh; }
layer_e2e() { bash test/e2e/run.sh; }
layer_matrix() { bash test/matrix/run.sh --short; }
layer_oracle() { bash test/oracle/run.sh; }
layer_kill() { bash test/kill/run.sh 30 && FRAZIL_KILL_CATALOG=glue bash test/kill/run.sh 15 && bash test/kill/inputs.sh; }

LOGS=$(mktemp -d /tmp/frazil-layers.XXXXXX)
trap 'rm -rf "$LOGS"' EXIT
for layer in ${*:-$ALL}; do
    start=$SECONDS
    echo "==== $layer"
    "layer_$layer" 2>&1 | tee "$LOGS/$layer"
    if [ "${PIPESTATUS[0]}" = 0 ]; then echo "==== $layer: ok ($((SECONDS - start)) s)"
    else
        echo "==== $layer: FAILED ($((SECONDS - start)) s)"
        failed+=("$layer")
    fi
done
# A reader of a shortened output sees its end: what failed, once more and with what stands around it.
for layer in ${failed[@]+"${failed[@]}"}; do
    echo "==== $layer failed; of its output:"
    grep -aE -B4 -A4 'FAILED|failed|ERROR|Error:|Error 1|error:|SUMMARY|assert|WARNING: Thread|Traceback' "$LOGS/$layer" | grep -av '^\[ *\(RUN\|OK\)' | cut -c1-400 | tail -n 80
done
echo "==== $((SECONDS - began)) s; failed layers: ${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
