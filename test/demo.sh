#!/bin/sh
# The demo: generated syslog and authlog records go through the main job's two INSERTs into Iceberg tables in an embedded SQLite catalog on local files.
set -eu
cd "$(dirname "$0")/.."
DEMO=${FRAZIL_DEMO_DIR:-$PWD/work-demo}
rm -rf "$DEMO"
mkdir -p "$DEMO/in/syslog" "$DEMO/in/authlog"
COUNT=${FRAZIL_DEMO_RECORDS:-200000}

echo "== generating $COUNT syslog and $((COUNT / 3)) authlog records"
TODAY=$(date +%Y-%m-%d)
python3 bench/gen_logs.py syslog "$COUNT" --seed 7 --start "${TODAY}T00:00:00" --rate 10 >"$DEMO/in/syslog/part-0.ndjson"
python3 bench/gen_logs.py authlog "$((COUNT / 3))" --seed 8 --start "${TODAY}T00:00:00" --rate 3 >"$DEMO/in/authlog/part-0.ndjson"

CATALOG="CREATE CATALOG demo WITH (
  'type' = 'iceberg',
  'catalog-type' = 'sql',
  'uri' = 'sqlite:///$DEMO/catalog.db',
  'warehouse' = 'file://$DEMO/warehouse'
);"

columns='ts_raw STRING, ts TIMESTAMP(6), host STRING, program STRING, msg STRING, dt DATE, hr INT'
cat >"$DEMO/create_tables.sql" <<SQL
$CATALOG
CREATE DATABASE IF NOT EXISTS demo.logs;
CREATE TABLE IF NOT EXISTS demo.logs.syslog_events ($columns) PARTITIONED BY (dt, host)
WITH ('format-version' = '2', 'write.distribution-mode' = 'hash', 'write.parquet.compression-codec' = 'zstd');
CREATE TABLE IF NOT EXISTS demo.logs.authlog_events ($columns) PARTITIONED BY (dt, host)
WITH ('format-version' = '2', 'write.distribution-mode' = 'hash', 'write.parquet.compression-codec' = 'zstd');
SQL

source_table() { # NAME
    cat <<SQL
CREATE TEMPORARY TABLE $1_json (ts STRING, src_host STRING, program STRING, message STRING)
WITH ('connector' = 'filesystem', 'path' = '$DEMO/in/$1', 'format' = 'json', 'json.ignore-parse-errors' = 'true');
SQL
}
insert() { # NAME
    cat <<SQL
INSERT INTO demo.logs.$1_events
SELECT
  ts AS ts_raw,
  CAST(TO_TIMESTAMP(SUBSTRING(ts, 1, 19), 'yyyy-MM-dd''T''HH:mm:ss') AS TIMESTAMP(6)),
  TRIM(src_host),
  program,
  message,
  CAST(SUBSTRING(ts, 1, 10) AS DATE),
  CAST(SUBSTRING(ts, 12, 2) AS INT)
FROM $1_json
WHERE src_host IS NOT NULL
  AND TRIM(src_host) <> ''
  AND ts IS NOT NULL;
SQL
}
{
    echo "$CATALOG"
    source_table syslog
    source_table authlog
    echo "STATEMENT SET BEGIN"
    insert syslog
    insert authlog
    echo "END;"
} >"$DEMO/files_to_iceberg.sql"

echo "== frazil run create_tables.sql files_to_iceberg.sql"
build/frazil run "$DEMO/create_tables.sql" "$DEMO/files_to_iceberg.sql"

echo "== counts by dt and hr"
build/frazil sql -i "$DEMO/create_tables.sql" -e "
SELECT dt, hr, COUNT(*) AS cnt, MIN(ts) AS min_ts, MAX(ts) AS max_ts
FROM demo.logs.syslog_events GROUP BY dt, hr ORDER BY dt DESC, hr DESC LIMIT 24;
SELECT host, program, COUNT(*) AS cnt
FROM demo.logs.authlog_events WHERE dt = current_date GROUP BY host, program ORDER BY cnt DESC LIMIT 10;"

TABLE=$(find "$DEMO/warehouse" -name '*.metadata.json' -path '*syslog_events*' | sort | tail -n 1)
cat <<TEXT

The tables are plain Iceberg; any engine opens them. From PyIceberg:
  from pyiceberg.catalog import load_catalog
  c = load_catalog("demo", type="sql", uri="sqlite:///$DEMO/catalog.db", warehouse="file://$DEMO/warehouse")
  print(c.load_table("logs.syslog_events").scan().to_arrow().num_rows)
From DuckDB:
  INSTALL iceberg; LOAD iceberg;
  SELECT host, count(*) FROM iceberg_scan('$TABLE') GROUP BY host;
TEXT
