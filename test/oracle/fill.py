#!/usr/bin/env python3
"""Fills the placeholders of the SQL scripts in test/data/sql: the options of the catalog, the bucket, the brokers.

    fill.py frazil|flink DIR BROKER     writes DIR/create_tables.sql, kafka_to_iceberg.sql, check_catalog.sql and init.sql; tables go to DIR/warehouse

frazil: the catalog is SQLite's, everything else stands as it is. flink: a Hadoop catalog, which takes no location; sources end at what is there now,
so that the job ends by itself; Flink's grammar wants EXECUTE before STATEMENT SET.
"""
import os
import re
import sys

SQL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/sql")


def catalog(engine, where):
    if engine == "frazil":
        options = {"type": "iceberg", "catalog-type": "sql", "uri": f"sqlite:///{where}/catalog.db", "warehouse": f"file://{where}/warehouse"}
    else:
        options = {"type": "iceberg", "catalog-type": "hadoop", "warehouse": f"file://{where}/warehouse"}
    return "CREATE CATALOG glue_prod WITH (\n%s\n);" % ",\n".join(f"  '{k}' = '{v}'" for k, v in options.items())


def fill(text, engine, where, broker):
    text, n = re.subn(r"CREATE CATALOG glue_prod WITH \(.*?\);", lambda _: catalog(engine, where), text, flags=re.S)
    assert n == 1
    text = text.replace("kafka1:9092,kafka2:9092,kafka3:9092", broker)
    if engine == "flink":
        text = re.sub(r",\n  'location' = '[^']*'", "", text)
        text = text.replace("  'scan.startup.mode'", "  'scan.bounded.mode' = 'latest-offset',\n  'scan.startup.mode'").replace("STATEMENT SET BEGIN", "EXECUTE STATEMENT SET BEGIN")
    return text.replace("s3://<YOUR_ICEBERG_BUCKET>", f"file://{where}")


def main():
    engine, where, broker = sys.argv[1:]
    where = os.path.abspath(where)
    for source, target in (("create_aws_iceberg_tables.sql", "create_tables.sql"), ("kafka_to_aws_iceberg.sql", "kafka_to_iceberg.sql"), ("check_aws_glue.sql", "check_catalog.sql")):
        with open(f"{SQL}/{source}") as f, open(f"{where}/{target}", "w") as out:
            out.write(fill(f.read(), engine, where, broker))
    with open(f"{where}/init.sql", "w") as out:
        out.write(catalog(engine, where) + "\nUSE CATALOG glue_prod;\n")


main()
