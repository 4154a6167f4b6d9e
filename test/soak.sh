#!/usr/bin/env bash
# The long tests (./run soak; an hour and more): the real Flink beside frazil, 200 kills, Java as a third reader that verifies every file, and whatever
# the layers of CI leave out. Each part prints its own lines; arguments choose parts.
set -uo pipefail
cd "$(dirname "$0")/.."
export FRAZIL_CACHE=${FRAZIL_CACHE:-$HOME/.cache/frazil}
failed=()

part_flink() { bash test/oracle/beside.sh; }
part_oracle() { FRAZIL_ORACLE_READERS=pyiceberg,duckdb,java bash test/oracle/run.sh; }
part_interop() { FRAZIL_INTEROP_VERIFY=1 bash test/interop/run.sh; }
part_e2e() { FRAZIL_LONG=1 bash test/e2e/run.sh; }
part_matrix() { FRAZIL_MATRIX_READERS=pyiceberg,duckdb,java bash test/matrix/run.sh; }
part_kill() { bash test/kill/run.sh 200 && FRAZIL_KILL_CATALOG=glue bash test/kill/run.sh 200 && FRAZIL_KILL_CATALOG=s3tables bash test/kill/run.sh 50; }

for part in ${*:-flink oracle interop e2e matrix kill}; do
    start=$SECONDS
    echo "==== $part"
    "part_$part" || failed+=("$part")
    echo "==== $part: $((SECONDS - start)) s"
done
echo "==== failed parts: ${failed[*]:-none}"
[ ${#failed[@]} = 0 ]
