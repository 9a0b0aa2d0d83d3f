#!/usr/bin/env python3
"""Compares every typed value of every table of a warehouse with the state folded from a change file.

    compare.py --warehouse DIR --namespace NS --changes FILE --tables expected/X.json [--reader duckdb|pyiceberg] [--selftest]

Ends with 0 if nothing differs, 1 if something does (each difference on a line: table, key, column, what was expected and
what was read), 2 if it could not compare. `--selftest` then spoils copies of the expectation, one altered cell, one missing
row, one extra row, in every table and for every reader, and ends with 1 if one of them goes unnoticed.
"""

import argparse
import json
import struct
import sys

sys.dont_write_bytecode = True

import fold  # noqa: E402
import warehouse  # noqa: E402

SHOWN_MAX = 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--changes", required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--reader", choices=sorted(warehouse.READERS), action="append")
    parser.add_argument("--selftest", action="store_true")
    asked = parser.parse_args()
    with open(asked.tables, encoding="utf-8") as file:
        descriptions = json.load(file)
    log = fold.Log(asked.changes)
    failed = False
    for reader in (warehouse.READERS[name](asked.warehouse) for name in asked.reader or sorted(warehouse.READERS)):
        for target, description in descriptions.items():
            expected = fold.Table(log, description).rows()
            differences = [*columns_differ(reader, asked.namespace, target, description)]
            found = [] if differences else reader.rows(asked.namespace, target, description["columns"])
            differences += rows_differ(description, expected, found) if not differences else []
            for line in differences[:SHOWN_MAX]:
                print(f"{reader.name}: {target}: {line}")
            if len(differences) > SHOWN_MAX:
                print(f"{reader.name}: {target}: and {len(differences) - SHOWN_MAX} more differences")
            failed |= bool(differences)
            print(f"{reader.name}: {target}: {len(found)} rows read, {len(expected)} expected, {len(differences)} differences")
            if asked.selftest and not differences:
                failed |= not notices_all(reader, target, description, expected, found)
    return 1 if failed else 0


def columns_differ(reader, namespace, target, description):
    found = reader.columns(namespace, target)
    wanted = {name: reader.expected_type(kind) for name, kind in description["columns"].items()}
    for name in dict.fromkeys([*wanted, *found]):
        if wanted.get(name) != found.get(name):
            yield f"column {name}: expected {wanted.get(name, 'no such column')}, found {found.get(name, 'none')}"


def rows_differ(description, expected, found):
    """Every difference between two sets of rows, as text."""
    if not description["key"]:
        return multisets_differ(expected, found)
    columns = list(description["columns"])
    places = [columns.index(name) for name in description["key"]]
    differences, wanted, there = [], {}, {}
    for rows, by_key, where in ((expected, wanted, "expected"), (found, there, "read")):
        for row in rows:
            key = tuple(row[place] for place in places)
            if key in by_key:
                differences.append(f"key {key}: twice in what was {where}")
            by_key[key] = row
    differences += [f"key {key}: missing" for key in wanted if key not in there]
    differences += [f"key {key}: extra" for key in there if key not in wanted]
    for key, row in wanted.items():
        cells = zip(columns, row, there.get(key, row))
        differences += [f"key {key}: column {name}: expected {short(a)}, read {short(b)}" for name, a, b in cells if exactly(a) != exactly(b)]
    return differences


def multisets_differ(expected, found):
    """For tables without a key: how often each row is there, as a whole."""
    counts = {}
    for rows, step in ((expected, 1), (found, -1)):
        for row in rows:
            identity = exactly(row)
            first, count = counts.get(identity, (row, 0))
            counts[identity] = (first, count + step)
    differences = []
    for row, count in counts.values():
        if count:
            differences.append(f"row {short(row)}: {'missing' if count > 0 else 'extra'}{'' if abs(count) == 1 else f' {abs(count)} times'}")
    return differences


def exactly(value):
    """A value that is equal only to what is the same in type and every bit: -0.0 is not 0.0, 1.50 is not 1.5, true is not 1."""
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(exactly, value))
    if isinstance(value, dict):
        return ("dict", *sorted((name, exactly(inner)) for name, inner in value.items()))
    return (type(value).__name__, str(value) if hasattr(value, "as_tuple") else value)


def short(value):
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]}... ({len(text)} characters)"


def notices_all(reader, target, description, expected, found):
    """Spoils the expectation in three ways, each of which must be one difference."""
    if not expected:
        print(f"{reader.name}: {target}: selftest needs a row")
        return False
    middle = len(expected) // 2
    column = max(place for place, name in enumerate(description["columns"]) if name not in description["key"])
    altered = list(expected)
    altered[middle] = tuple(another(value) if place == column else value for place, value in enumerate(expected[middle]))
    key_column = list(description["columns"]).index((description["key"] or list(description["columns"]))[0])
    stranger, taken = expected[-1], {exactly(row[key_column]) for row in expected}
    while exactly(stranger[key_column]) in taken:
        stranger = tuple(another(value) if place == key_column else value for place, value in enumerate(stranger))
    spoiled = {
        "one altered cell": (altered, 1 if description["key"] else 2),
        "one missing row": (expected[:middle] + expected[middle + 1:], 1),
        "one extra row": ([*expected, stranger], 1),
    }
    noticed = True
    for name, (expectation, wanted) in spoiled.items():
        reported = len(rows_differ(description, expectation, found))
        if reported != wanted:
            print(f"{reader.name}: {target}: selftest: {name} was reported {reported} times, not {wanted}")
            noticed = False
    return noticed


def another(value):
    """Another value of the same type."""
    import datetime
    import decimal

    if value is None:
        return 0
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1 if abs(value) < 1e15 else 17
    if isinstance(value, decimal.Decimal):
        return value + 1
    if isinstance(value, str):
        return value + "?"
    if isinstance(value, bytes):
        return value + b"?"
    if isinstance(value, datetime.date):
        return value + datetime.timedelta(days=1)
    if isinstance(value, list):
        return [*value, "?"]
    return {**value, "?": 1}


if __name__ == "__main__":
    sys.exit(main())
