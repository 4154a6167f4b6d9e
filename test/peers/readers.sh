#!/usr/bin/env bash
# Other programs that read Iceberg tables: pyiceberg 0.12.0 with pyarrow, DuckDB 1.5.5 with its iceberg extension, Java Iceberg 1.10.1.
#   readers.sh up                         fetches all of them
#   readers.sh table ARGUMENT...          read_table.py; --help tells its options
#   readers.sh java METADATA [SNAPSHOT|- [OPTION...]]    TableReader.java: its options are "rows" and "verify"
#   readers.sh jars                       the class path of Iceberg with what it needs for AWS
#   readers.sh python [ARGUMENT...]       that Python; without arguments: prints its path
# Of tables on S3: S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION; as moto.sh has them by default.
. "$(dirname "$0")/lib.sh"

PY=$CACHE/readers-python-aws/venv/bin/python3
JARS=$CACHE/iceberg-java-1.10.1
AWS_JARS=$CACHE/iceberg-aws-1.10.1

# DuckDB's extensions come as packages of their own, signed; nothing is fetched at run time. 1.5.5 is the newest that has them all.
fetch_python() {
    python3 -m venv venv
    venv/bin/pip install --quiet 'pyiceberg[pyarrow,sql-sqlite,sql-postgres,glue]==0.12.0' pyarrow==26.0.1 \
        duckdb==1.5.5 duckdb-extension-iceberg==1.5.5 duckdb-extension-avro==1.5.5 duckdb-extension-httpfs==1.5.5
}
fetch_java() {
    maven org.apache.iceberg:iceberg-core:1.10.1 org.apache.iceberg:iceberg-data:1.10.1 org.apache.iceberg:iceberg-parquet:1.10.1 \
        org.apache.hadoop:hadoop-client-api:3.4.1 org.apache.hadoop:hadoop-client-runtime:3.4.1 org.slf4j:slf4j-simple:2.0.17
}
fetch_aws() { maven org.apache.iceberg:iceberg-aws:1.10.1 org.apache.iceberg:iceberg-aws-bundle:1.10.1; }
with_python() { cached readers-python-aws fetch_python; }
with_java() {
    program java openjdk-17-jdk-headless
    program mvn maven
    cached iceberg-java-1.10.1 fetch_java
}
java_reader() {
    local cp
    with_java
    cp=$(java_main TableReader "$JARS/*")
    if [[ $1 == s3* ]]; then
        cached iceberg-aws-1.10.1 fetch_aws
        aws_defaults
        cp=$cp:$AWS_JARS/*
    fi
    java -Xmx1g -Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$cp" TableReader "$@"
}

[ $# -ge 1 ] || help
command=$1
shift
case $command in
up) with_python; with_java; java_main TableReader "$JARS/*" >/dev/null ;;
table) with_python; exec "$PY" "$PEERS/read_table.py" "$@" ;;
java) java_reader "$@" ;;
jars)
    with_java
    cached iceberg-aws-1.10.1 fetch_aws
    echo "$JARS/*:$AWS_JARS/*"
    ;;
python)
    with_python
    if [ $# = 0 ]; then echo "$PY"; else exec "$PY" "$@"; fi
    ;;
*) help ;;
esac
