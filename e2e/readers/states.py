#!/usr/bin/env python3
"""Tells what a warehouse stores about itself: where each table's copy stands, and the pipeline's record. Quick, for a look beside a run.

    states.py --warehouse DIR --namespace NS [--patience SECONDS] [--ask TABLE EXPRESSION]...

Prints JSON, all of one moment of the catalogue: `tables`, the state that is a property of each table, by the table's name; `records`, the
record of each control table; `answers`, what DuckDB answers to `SELECT EXPRESSION FROM table`, as texts, in the very snapshot that the state
stands beside. A table or a catalogue that is not there yet has no state, and its answer is null. If somebody holds the catalogue's lock for
longer than SECONDS (30), it prints null.
"""

import argparse
import json
import os
import sqlite3
import sys

sys.dont_write_bytecode = True

import warehouse  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--patience", type=float, default=30.0)
    parser.add_argument("--ask", nargs=2, action="append", default=[], metavar=("TABLE", "EXPRESSION"))
    asked = parser.parse_args()
    try:
        places = newest(asked.warehouse, asked.namespace, asked.patience)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        print("null")
        return 0
    said = {"tables": {}, "records": {}, "answers": []}
    for table, place in places.items():
        with open(place, encoding="utf-8") as file:
            properties = json.load(file).get("properties", {})
        for name, kind in (("urutau.state", "tables"), ("urutau.pipeline-state", "records")):
            if name in properties:
                said[kind][table] = json.loads(properties[name])
    session = warehouse.DuckDb(asked.warehouse).session if asked.ask else None
    for table, expression in asked.ask:
        query = f"SELECT {expression} FROM iceberg_scan('{places[table]}')" if table in said["tables"] else "SELECT NULL"
        value = session.execute(query).fetchone()[0]
        said["answers"].append(None if value is None else str(value))
    print(json.dumps(said))
    return 0


def newest(folder, namespace, patience):
    """The newest metadata file of every table, in one reading of the catalogue. A process that was killed may have left a journal there,
    which the next one that opens the file rolls back, whoever it is: so this one must be able to write."""
    catalog = os.path.join(os.path.abspath(folder), "catalog.db")
    if not os.path.exists(catalog):
        return {}
    with sqlite3.connect(f"file:{catalog}?mode=rw", uri=True, timeout=patience) as session:
        if not session.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
            return {}
        rows = session.execute("SELECT table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?",
                               (warehouse.CATALOG, namespace)).fetchall()
    return {table: place.removeprefix("file://") for table, place in rows}


if __name__ == "__main__":
    sys.exit(main())
