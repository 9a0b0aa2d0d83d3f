"""Reads an embedded warehouse with two engines that have nothing of urutau in them: DuckDB and PyIceberg.

Both hand over Arrow; `values` brings a column to the forms that `fold.py` describes. What a column must be for an engine to
hold a declared type stands in `DUCKDB` and `ICEBERG`, written out, so that a type that changed on the way is found too.
"""

import decimal
import glob
import json
import os
import re
import site
import sqlite3
import uuid

CATALOG = "urutau"
DUCKDB = {"bool": "BOOLEAN", "int8": "INTEGER", "int16": "INTEGER", "int32": "INTEGER", "int64": "BIGINT", "float32": "FLOAT",
          "float64": "DOUBLE", "string": "VARCHAR",
          "enum": "VARCHAR", "json": "VARCHAR", "binary": "BLOB", "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP",
          "timestamptz": "TIMESTAMP WITH TIME ZONE", "uuid": "UUID"}
ICEBERG = {"bool": "boolean", "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float32": "float",
           "float64": "double", "string": "string", "enum": "string",
           "json": "string", "binary": "binary", "date": "date", "time": "time", "timestamp": "timestamp",
           "timestamptz": "timestamptz", "uuid": "uuid"}


def duckdb_type(kind):
    if match := re.fullmatch(r"list\((.+)\)", kind):
        return duckdb_type(match[1]) + "[]"
    if kind.startswith("struct("):
        inner = (f"{name} {duckdb_type(of.removesuffix(' not null'))}" for name, of in struct_fields(kind))
        return f"STRUCT({', '.join(inner)})"
    return DUCKDB.get(kind) or kind.upper()


def iceberg_type(kind):
    if match := re.fullmatch(r"list\((.+)\)", kind):
        return f"list<{iceberg_type(match[1])}>"
    if kind.startswith("struct("):
        inner = (f"{name}: {'required' if of.endswith(' not null') else 'optional'} {iceberg_type(of.removesuffix(' not null'))}" for name, of in struct_fields(kind))
        return f"struct<{', '.join(inner)}>"
    return ICEBERG.get(kind) or kind.replace(",", ", ")


def struct_fields(kind):
    """The names of a struct's fields and what they are; none of them holds others."""
    return [tuple(field.split(" ", 1)) for field in kind.removeprefix("struct(").removesuffix(")").split(", ")]


class DuckDb:
    """Finds a table's newest metadata in the catalogue's database and lets DuckDB's Iceberg extension read from there."""

    name = "duckdb"

    def __init__(self, warehouse):
        import duckdb

        self.catalog = os.path.join(os.path.abspath(warehouse), "catalog.db")
        self.session = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
        self.session.execute("SET threads = 2")
        self.session.execute("SET TimeZone = 'UTC'")
        for extension in ("avro", "iceberg"):
            self.session.execute(f"LOAD '{extension_file(extension)}'")

    def metadata(self, namespace, table):
        with sqlite3.connect(f"file:{self.catalog}?mode=ro", uri=True) as catalog:
            found = catalog.execute("SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
                                    (CATALOG, namespace, table)).fetchone()
        if found is None:
            raise LookupError(f"the catalogue {self.catalog} has no table {namespace}.{table}")
        return found[0].removeprefix("file://")

    def scan(self, namespace, table):
        return f"iceberg_scan('{self.metadata(namespace, table)}')"

    def columns(self, namespace, table):
        described = self.session.execute(f"DESCRIBE SELECT * FROM {self.scan(namespace, table)}").fetchall()
        return {row[0]: row[1] for row in described}

    def expected_type(self, kind):
        return duckdb_type(kind)

    def rows(self, namespace, table, columns):
        names = ", ".join(f'"{name}"' for name in columns)
        return rows_of(self.session.execute(f"SELECT {names} FROM {self.scan(namespace, table)}").to_arrow_table(), columns)


def extension_file(name):
    found = [file for folder in site.getsitepackages() for file in glob.glob(f"{folder}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")]
    if not found:
        raise LookupError(f"the wheel of DuckDB's extension '{name}' is not installed")
    return found[0]


class PyIceberg:
    """Opens the same catalogue as PyIceberg's SQL catalogue: nothing but its own code finds the tables."""

    name = "pyiceberg"

    def __init__(self, warehouse):
        from pyiceberg.catalog.sql import SqlCatalog

        place = os.path.abspath(warehouse)
        self.catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")

    def table(self, namespace, table):
        return self.catalog.load_table((namespace, table))

    def tables(self, namespace):
        return sorted(name for _, name in self.catalog.list_tables(namespace))

    def columns(self, namespace, table):
        # Fields of a struct are numbered, and how is nobody's business.
        return {field.name: re.sub(r"\b\d+: ", "", str(field.field_type)) for field in self.table(namespace, table).schema().fields}

    def expected_type(self, kind):
        return iceberg_type(kind)

    def rows(self, namespace, table, columns, snapshot=None):
        scan = self.table(namespace, table).scan(selected_fields=tuple(columns), snapshot_id=snapshot)
        return rows_of(scan.to_arrow().select(list(columns)), columns)


READERS = {reader.name: reader for reader in (DuckDb, PyIceberg)}


def rows_of(arrow, columns):
    """An Arrow table as tuples of plain values."""
    lists = [values(arrow.column(place), kind) for place, kind in enumerate(columns.values())]
    return list(zip(*lists)) if lists and arrow.num_rows else []


def values(column, kind):
    import pyarrow

    if kind in ("time", "timestamp", "timestamptz"):
        unit = pyarrow.time64("us") if kind == "time" else pyarrow.timestamp("us", tz=column.type.tz)
        if kind != "time" and (column.type.tz is not None) != (kind == "timestamptz"):
            raise TypeError(f"{kind} arrived as {column.type}")
        return column.cast(unit).cast(pyarrow.int64()).to_pylist()
    if kind == "days":
        return column.cast(pyarrow.int32()).to_pylist()
    plain = column.to_pylist()
    if kind == "uuid":
        return [None if value is None else uuid_text(value) for value in plain]
    if kind == "json":
        return [None if value is None else json.loads(value, parse_float=decimal.Decimal) for value in plain]
    return plain


def uuid_text(value):
    if isinstance(value, bytes):
        value = uuid.UUID(bytes=value)
    return str(value).lower()
