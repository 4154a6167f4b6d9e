#!/bin/sh
# Java's HadoopCatalog and JdbcCatalog and ours on the same tables, in turn.
# usage: catalog_java.sh TOOL CLASSPATH    TOOL: test/tools/catalog_tool.c (how to build: head of catalog_pyiceberg.py);
#   CLASSPATH: iceberg-core, hadoop-client and sqlite-jdbc jars, "/dir/*"
set -eu
tool=$1 cp=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
javac -cp "$cp" -d "$dir" "$here/CatalogJava.java"

check() {
    if printf '%s\n' "$shown" | grep -qxF "$1"; then echo "ok   $kind: $1"; else
        echo "FAIL $kind: no '$1' in: $shown"
        exit 1
    fi
}
for kind in hadoop sql; do
    wh=file://$dir/$kind/wh
    mkdir -p "$dir/$kind"
    uri=-
    [ $kind = hadoop ] || uri=jdbc:sqlite:$dir/$kind/c.db
    we() { "$tool" $kind "$uri" "$wh" lake "$@"; }
    java() { command java -cp "$cp:$dir" CatalogJava $kind "$wh" "$uri" >"$dir/java.log" 2>&1 || { cat "$dir/java.log"; exit 1; }; }
    we create db t >/dev/null
    for round in 1 2 3; do
        we set db t k $round >/dev/null
        java
        if grep -i exception "$dir/java.log"; then exit 1; fi
        shown=$(we show db t)
        check "seen=$round"
    done
    check "java=was here"
    shown=$(we list jdb)
    check made
    we set jdb made k v >/dev/null
    shown=$(we show jdb made)
    check k=v
done
echo "all ok"
