#!/usr/bin/env python3
"""Writes the expected state into a warehouse with PyIceberg alone, so that the judge can be judged without urutau.

    imitate.py --warehouse DIR --namespace NS --changes FILE --tables expected/X.json [--spoil TABLE]

With `--spoil`, one row of that table is written twice: the comparison must then fail.
"""

import argparse
import json
import os
import re
import sys
import uuid

sys.dont_write_bytecode = True

import fold  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--changes", required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--spoil")
    asked = parser.parse_args()

    import pyarrow
    from pyiceberg.catalog.sql import SqlCatalog

    place = os.path.abspath(asked.warehouse)
    os.makedirs(place)
    catalog = SqlCatalog("urutau", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
    catalog.create_namespace(asked.namespace)
    log = fold.Log(asked.changes)
    with open(asked.tables, encoding="utf-8") as file:
        descriptions = json.load(file)
    for target, description in descriptions.items():
        rows = fold.Table(log, description).rows()
        if target == asked.spoil:
            rows.append(rows[0])
        kinds = description["columns"]
        columns = [[plain(row[place], kind) for row in rows] for place, kind in enumerate(kinds.values())]
        schema = pyarrow.schema([(name, arrow_type(kind, pyarrow)) for name, kind in kinds.items()])
        arrow = pyarrow.table([pyarrow.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)
        table = catalog.create_table((asked.namespace, target), schema=iceberg_schema(kinds))
        table.append(arrow)
    return 0


def iceberg_schema(kinds):
    """The table's schema in Iceberg's own words, since Arrow has no word for a UUID that PyIceberg takes."""
    from pyiceberg import types
    from pyiceberg.schema import Schema

    plain_types = {"bool": types.BooleanType(), "int32": types.IntegerType(), "int64": types.LongType(), "float64": types.DoubleType(),
                   "string": types.StringType(), "enum": types.StringType(), "json": types.StringType(), "binary": types.BinaryType(),
                   "date": types.DateType(), "time": types.TimeType(), "timestamp": types.TimestampType(), "timestamptz": types.TimestamptzType(),
                   "uuid": types.UUIDType()}
    fields = []
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
            field_type = types.DecimalType(int(match[1]), int(match[2]))
        elif match := re.fullmatch(r"list\((.+)\)", kind):
            field_type = types.ListType(1000 + number, plain_types[match[1]], False)
        else:
            field_type = plain_types[kind]
        fields.append(types.NestedField(number, name, field_type, required=False))
    return Schema(*fields)


def arrow_type(kind, pyarrow):
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return pyarrow.decimal128(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"list\((.+)\)", kind):
        return pyarrow.list_(arrow_type(match[1], pyarrow))
    return {"bool": pyarrow.bool_(), "int32": pyarrow.int32(), "int64": pyarrow.int64(), "float64": pyarrow.float64(), "string": pyarrow.string(),
            "enum": pyarrow.string(), "json": pyarrow.string(), "binary": pyarrow.binary(), "date": pyarrow.date32(), "time": pyarrow.time64("us"),
            "timestamp": pyarrow.timestamp("us"), "timestamptz": pyarrow.timestamp("us", tz="UTC"), "uuid": pyarrow.uuid()}[kind]


def plain(value, kind):
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, default=float)
    if kind == "uuid":
        return uuid.UUID(value).bytes
    return value


if __name__ == "__main__":
    sys.exit(main())
