#!/usr/bin/env python3
"""Asks DuckDB about a table of a warehouse: for tables too large to be compared row by row in Python.

    query.py --warehouse DIR --namespace NS --table NAME [--reader duckdb|pyiceberg] EXPRESSION...
    query.py --warehouse DIR --namespace NS --table NAME [--reader duckdb|pyiceberg] --columns

Prints the answer to `SELECT EXPRESSION... FROM table` as a JSON list of texts, or the names of the table's columns. With `--reader pyiceberg`
the table is read by PyIceberg, all of it; DuckDB only calculates what is asked about the rows.
"""

import argparse
import json
import sys

sys.dont_write_bytecode = True

import warehouse  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--reader", choices=sorted(warehouse.READERS), default=warehouse.DuckDb.name)
    parser.add_argument("--columns", action="store_true")
    parser.add_argument("expressions", nargs="*")
    asked = parser.parse_args()
    if asked.columns == bool(asked.expressions):
        parser.error("either --columns or expressions")
    reader = warehouse.READERS[asked.reader](asked.warehouse)
    print(json.dumps(list(reader.columns(asked.namespace, asked.table)) if asked.columns else answers(reader, asked)))
    return 0


def answers(reader, asked):
    duckdb = warehouse.DuckDb(asked.warehouse)
    rows = duckdb.scan(asked.namespace, asked.table)
    if reader.name != duckdb.name:
        duckdb.session.register("rows", reader.table(asked.namespace, asked.table).scan().to_arrow())
        rows = "rows"
    return [str(value) for value in duckdb.session.execute(f"SELECT {', '.join(asked.expressions)} FROM {rows}").fetchone()]


if __name__ == "__main__":
    sys.exit(main())
