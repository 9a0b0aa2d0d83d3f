#!/usr/bin/env python3
"""Compares a warehouse with a recording of a real connector: every value that an event carries, with its type.

    recorded.py --warehouse DIR --namespace NS --recording DIR --tables expected/recorded-X.json
                [--column TABLE.COLUMN=TYPE]... [--selftest]

A recording has a file a topic, a Kafka record a line: key and value as the text of the message. A table's description is that of
`fold.py` and says besides how a column's value is carried, where that is not as it lands: "time from us" is a number of
microseconds. A table without a key holds a row of every event, of a delete what is known of the old row: its key, or with
"before": "full" all of it. Of a table with a key the last row of each key is there. What an update did not send is what the row
had before. A TRUNCATE is passed over.

Ends as `compare.py` does. Standard library but for the two readers, nothing of urutau's.
"""

import argparse
import base64
import decimal
import glob
import json
import struct
import sys

sys.dont_write_bytecode = True

import compare  # noqa: E402
import fold  # noqa: E402
import warehouse  # noqa: E402

NOT_SENT = "__debezium_unavailable_value"
UNITS = {"us": 1, "ms": 1_000}
# Read back in a form that holds every value: Python has no days before its year 1, and a parser of JSON forgets names given twice.
READ_AS = {"date": "days", "json": "string"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--recording", required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--column", action="append", default=[])
    parser.add_argument("--selftest", action="store_true")
    asked = parser.parse_args()
    with open(asked.tables, encoding="utf-8") as file:
        descriptions = json.load(file)
    for changed in asked.column:
        place, kind = changed.split("=")
        table, column = place.split(".")
        descriptions[table]["columns"][column] = kind
    events = recorded(asked.recording)
    failed = False
    for reader in (warehouse.READERS[name](asked.warehouse) for name in sorted(warehouse.READERS)):
        for target, told in descriptions.items():
            carried = {name: (kind.split(" from ") + [""])[:2] for name, kind in told["columns"].items()}
            description = {**told, "columns": {name: kind for name, (kind, _) in carried.items()}}
            expected = rows(events[told["source"]], told, carried)
            differences = [*compare.columns_differ(reader, asked.namespace, target, description)]
            found = [] if differences else read(reader, asked.namespace, target, description["columns"])
            differences += compare.rows_differ(description, expected, found) if not differences else []
            for line in differences[:compare.SHOWN_MAX]:
                print(f"{reader.name}: {target}: {line}")
            failed |= bool(differences)
            print(f"{reader.name}: {target}: {len(found)} rows read, {len(expected)} expected, {len(differences)} differences")
            if asked.selftest and not differences:
                failed |= not compare.notices_all(reader, target, description, expected, found)
    return 1 if failed else 0


def recorded(folder):
    """The events of each table, in their order: operation, key, old row, new row."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/*.jsonl")):
        with open(path, encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                key, event = payload(record["key"]), payload(record["value"])
                # A tombstone, a mark of a transaction, a message: none says anything about a row.
                if event is None or event.get("op") not in ("c", "r", "u", "d", "t"):
                    continue
                table = f"{event['source']['schema']}.{event['source']['table']}"
                found.setdefault(table, []).append((event["op"], key, event.get("before"), event.get("after")))
    return found


def payload(text):
    if text is None:
        return None
    message = json.loads(text, parse_float=decimal.Decimal)
    return message["payload"] if set(message) == {"schema", "payload"} else message


def rows(events, told, carried):
    by_key, appended = {}, []
    for op, key, old, new in events:
        if op == "t":
            continue
        name = tuple(key[column] for column in told["key"]) if told["key"] else None
        known = new if new is not None else old if told.get("before") == "full" else key
        before = by_key.pop(name, None)
        row = tuple(before[place] if is_not_sent(known.get(column)) else landed(known.get(column), kind, how)
                    for place, (column, (kind, how)) in enumerate(carried.items()))
        appended.append(row)
        if new is not None:
            by_key[name] = row
    return list(by_key.values()) if told["key"] else appended


def is_not_sent(value):
    return value in (NOT_SENT, [NOT_SENT], base64.b64encode(NOT_SENT.encode()).decode())


def landed(value, kind, how):
    """What a carried value is in a column of this type, in the form in which it is read back."""
    if value is None:
        return None
    if how == "unscaled":
        precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
        return fold.exact_decimal(unscaled(value, scale), precision, scale)
    if how == "variable":
        return format(unscaled(value["value"], value["scale"]), "f")
    if how == "days" or kind == "time" and how in UNITS or kind == "timestamp" and how in UNITS:
        return fold.expect(value, int) * UNITS.get(how, 1)
    if how:
        raise ValueError(f"the description names an unknown way: {how!r}")
    if kind in ("float32", "float64"):
        number = float(value)
        return struct.unpack(">f", struct.pack(">f", number))[0] if kind == "float32" else number
    if kind == "json":
        return pairs(value if isinstance(value, str) else json.dumps(value))
    if kind.startswith("struct("):
        return {name: landed(value[name], inner.removesuffix(" not null"), "") for name, inner in warehouse.struct_fields(kind)}
    if kind.startswith("list("):
        return [landed(element, kind[5:-1], "") for element in fold.expect(value, list)]
    return fold.typed(value, kind)


def unscaled(text, scale):
    return decimal.Decimal(int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)).scaleb(-scale)


def pairs(text):
    """JSON with every name that is given, also those given twice."""
    return json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=lambda members: ["object", *map(list, members)])


def read(reader, namespace, target, columns):
    found = reader.rows(namespace, target, {name: READ_AS.get(kind, kind) for name, kind in columns.items()})
    kinds = list(columns.values())
    return [tuple(pairs(value) if kind == "json" and value is not None else value for value, kind in zip(row, kinds)) for row in found]


if __name__ == "__main__":
    sys.exit(main())
