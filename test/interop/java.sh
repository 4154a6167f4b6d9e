#!/usr/bin/env bash
# interop/java.sh catalog|manifests|parquet TOOL_OR_DIR: the Java programs of this directory on what our tools write. Fetches SQLite's JDBC driver once.
. "$(dirname "$0")/../peers/lib.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
bash "$PEERS/readers.sh" up
fetch_driver() { maven org.xerial:sqlite-jdbc:3.50.3.0; }
cached sqlite-jdbc fetch_driver
CP="$CACHE/iceberg-java-1.10.1/*:$CACHE/sqlite-jdbc/*"
QUIET=-Dorg.slf4j.simpleLogger.defaultLogLevel=error
case ${1:-} in
catalog) sh "$HERE/catalog_java.sh" "$2" "$CP" ;;
manifests)
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    for codec in gzip zstd uncompressed; do
        mkdir "$dir/$codec"
        written=$("$2" write "$dir/$codec" "$codec")
        java "$QUIET" -cp "$CP" "$HERE/ManifestJava.java" "$written"
        echo "ok $codec"
    done
    ;;
parquet) java "$QUIET" -cp "$CP" "$HERE/ParquetIndex.java" "$2"/*.parquet ;;
*) help ;;
esac
