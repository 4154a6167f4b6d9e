#!/usr/bin/env bash
# fuzz/replay.sh [SECONDS [NAME...]]: replays every fuzz target's corpus (or the named ones') under ASan and UBSan; with SECONDS also fuzzes each target that long
# (clang's libFuzzer). FRAZIL_FUZZ_KEEP: a directory in which what the fuzzer found is kept, by target, and from which it goes on.
set -uo pipefail
cd "$(dirname "$0")/../.."
B=build-address
LIBS=$(sed -n "s/^LIBS *:= *//p" Makefile)
declare -A rooms=([json]="decode col base" [sql]="sql col base" [parquet]="parquet col base" [manifest]="iceberg col base" [metadata]="iceberg col base" [profile]="aws net base" [forward]="net base" [msgpack]="decode col base" [http]="net base" [body]="source spool net aws base" [otlp_pb]="decode col source spool net aws base" [otlp_json]="source spool net aws base" [syslog]="decode col net base" [firehose]="aws net base")
fail=0
names=("${@:2}")
[ ${#names[@]} -gt 0 ] || names=(json sql parquet manifest metadata profile forward msgpack http body otlp_pb otlp_json syslog firehose)
for name in "${names[@]}"; do
    libs=()
    for r in ${rooms[$name]}; do libs+=("$B/lib/$r.a"); done
    make -s SAN=address "${libs[@]}" || exit 1
    mkdir -p "$B/fuzz"
    gcc -std=c17 -D_GNU_SOURCE -Isrc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -DFUZZ_REPLAY "test/fuzz/fuzz_$name.c" -o "$B/fuzz/$name" "${libs[@]}" $LIBS || { fail=1; continue; }
    mapfile -t corpus < <(find "test/fuzz/corpus/$name" test/data/iceberg -type f 2>/dev/null | sort)
    case $name in json | sql | parquet | profile | forward | msgpack | http | body | otlp_pb | otlp_json | syslog | firehose) mapfile -t corpus < <(find "test/fuzz/corpus/$name" -type f | sort) ;; esac
    [ ${#corpus[@]} -gt 0 ] || { echo "fuzz $name: no corpus"; fail=1; continue; }
    printf 'fuzz %s: ' "$name"
    "$B/fuzz/$name" "${corpus[@]}" | tail -n 1 || fail=1
    if [ -n "${1:-}" ]; then
        srcs=()
        for r in ${rooms[$name]}; do srcs+=(src/"$r"/*.c); done
        work=$(mktemp -d)
        clang -std=c17 -D_GNU_SOURCE -Isrc -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all "test/fuzz/fuzz_$name.c" "${srcs[@]}" $LIBS -o "$work/fuzz" &&
            new=${FRAZIL_FUZZ_KEEP:-$work/new}/$name && mkdir -p "$new" "$work/seeds" && cp "${corpus[@]}" "$work/seeds" &&
            "$work/fuzz" -max_total_time="$1" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$new/" "$new" "$work/seeds" >"$work/log" 2>&1
        code=$?
        grep -aE 'stat::(number|average|peak)|^#[0-9]+.DONE|ERROR|SUMMARY|Test unit' "$work/log" | tail -n 8
        [ $code = 0 ] || { fail=1; tail -n 60 "$work/log"; }
        rm -rf "$work"
    fi
done
exit $fail
