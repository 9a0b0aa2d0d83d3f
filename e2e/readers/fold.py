"""The expected state: what a file of change events says that the tables hold, folded row by row.

Standard library only, nothing of urutau's: this is the judge. It knows the envelope (op, before, after, source) and the
column types that a description names, and no more. A table's description is one entry of expected/*.json:

    {"source": "shop.orders", "key": ["id"], "columns": {"id": "int64", ...}}

A table without a key is append-only: every event that brings a row is a row. "sometimes" lists columns that came or went: an
event without one of them leaves it null.

Values are brought to one form a type, the same that `readers.py` brings a reader's values to:
bool, int, float, str as they are; decimal: decimal.Decimal with exactly its scale; json: parsed, numbers as decimals; binary:
bytes; date: datetime.date; time, timestamp, timestamptz: microseconds as int (timestamptz: since 1970 in UTC); uuid: text in
lower case; list: list.
"""

import base64
import datetime
import decimal
import json
import re
import uuid

decimal.getcontext().prec = 76
EPOCH = datetime.datetime(1970, 1, 1)
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class Log:
    """A change file: its events by table, each with the offset of its line in bytes."""

    def __init__(self, path):
        self.path, self.events = path, {}
        offset = 0
        with open(path, "rb") as lines:
            for line in lines:
                event = json.loads(line, parse_float=decimal.Decimal)
                event = event.get("payload", event)
                if "op" in event:  # Marks of transactions say nothing about rows.
                    name = f"{event['source']['schema']}.{event['source']['table']}"
                    self.events.setdefault(name, []).append((offset, event["op"], event["before"], event["after"]))
                offset += len(line)
        self.size = offset


class Cut:
    """Which part of the log a state covers: all before `upto`, and of a divided transaction the lines from one to another."""

    def __init__(self, upto, within=()):
        self.upto, self.within = upto, list(within)

    def covers(self, offset):
        return offset < self.upto or any(first <= offset <= last for first, last in self.within)


class Table:
    """One table's history, typed once, to be folded up to any cut."""

    def __init__(self, log, description):
        self.columns, self.key = description["columns"], description["key"]
        self.sometimes = set(description.get("sometimes", []))
        self.log, self.changes = log, []
        for offset, op, before, after in log.events.get(description["source"], []):
            if op not in ("c", "r", "u", "d", "t"):
                raise ValueError(f"{log.path}, byte {offset}: operation {op!r} is unknown")
            old = key_of(before, self.key, self.columns) if before is not None and self.key else None
            new = typed_row(after, self.columns, self.sometimes) if after is not None else None
            self.changes.append((offset, op, old, new))
        self.places = [list(self.columns).index(column) for column in self.key]

    def rows(self, cut=None):
        """The rows at a cut (or at the end), as tuples in the order of the description's columns."""
        rows, appended = {}, []
        for offset, op, old, new in self.changes:
            if cut is not None and not cut.covers(offset):
                continue
            if op == "t":
                rows, appended = {}, []
            elif not self.key:
                appended.extend([new] if new is not None else [])
            else:
                if old is not None:
                    rows.pop(old, None)
                if new is not None:
                    rows[tuple(new[place] for place in self.places)] = new
        return list(rows.values()) if self.key else appended


def key_of(image, key, columns):
    return tuple(typed(image[column], columns[column]) for column in key)


def typed_row(image, columns, sometimes):
    missing = (set(columns) ^ set(image)) - (sometimes - set(image))
    if missing:
        raise ValueError(f"event and description differ in columns: {sorted(missing)}")
    return tuple(typed(image.get(column), kind) for column, kind in columns.items())


def typed(value, kind):
    """A JSON value as a value of the declared type, or an error: nothing is bent to fit."""
    if value is None:
        return None
    if kind == "bool":
        return expect(value, bool)
    if kind in INTEGER_BITS:
        bits = INTEGER_BITS[kind]
        expect(value, int)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"a value does not fit into {kind}")
        return value
    if kind == "float64":
        return float(value)
    if kind in ("string", "enum"):
        return expect(value, str)
    if kind == "json":
        return json.loads(value, parse_float=decimal.Decimal) if isinstance(value, str) else value
    if kind == "binary":
        return base64.b64decode(expect(value, str), validate=True)
    if kind == "uuid":
        return str(uuid.UUID(expect(value, str)))
    if kind == "date":
        return datetime.date.fromisoformat(expect(value, str))
    if kind == "time":
        at = datetime.time.fromisoformat(expect(value, str))
        return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond
    if kind in ("timestamp", "timestamptz"):
        return instant(expect(value, str), kind == "timestamptz")
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return exact_decimal(decimal.Decimal(value), int(match[1]), int(match[2]))
    if match := re.fullmatch(r"list\((.+)\)", kind):
        return [typed(element, match[1]) for element in expect(value, list)]
    raise ValueError(f"the description names an unknown type: {kind!r}")


def expect(value, kind):
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__} in the event, found {type(value).__name__}")
    return value


def exact_decimal(value, precision, scale):
    fixed = value.quantize(decimal.Decimal(1).scaleb(-scale))
    if fixed != value or fixed.adjusted() + scale >= precision and fixed:
        raise ValueError(f"a value does not fit into decimal({precision},{scale})")
    return abs(fixed) if fixed == 0 else fixed


def instant(text, zoned):
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if (at.tzinfo is not None) != zoned:
        raise ValueError("a time has a zone and should not, or the other way round")
    naive = at.astimezone(datetime.timezone.utc).replace(tzinfo=None) if zoned else at
    return (naive - EPOCH) // datetime.timedelta(microseconds=1)
