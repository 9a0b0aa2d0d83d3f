#!/usr/bin/env python3
"""Asks DuckDB about a table of a warehouse: for tables too large to be compared row by row in Python.

    query.py --warehouse DIR --namespace NS --table NAME EXPRESSION...

Prints the answer to `SELECT EXPRESSION... FROM table` as a JSON list of texts.
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
    parser.add_argument("expressions", nargs="+")
    asked = parser.parse_args()
    reader = warehouse.DuckDb(asked.warehouse)
    query = f"SELECT {', '.join(asked.expressions)} FROM {reader.scan(asked.namespace, asked.table)}"
    print(json.dumps([str(value) for value in reader.session.execute(query).fetchone()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
