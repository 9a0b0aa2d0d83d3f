#!/usr/bin/env python3
"""Writes changes.jsonl: three months of an order desk, as a change data capture connector would tell them.

One line is one Debezium envelope without its schema part. The same program writes the same bytes everywhere: it has a
generator of random numbers of its own, and no clock. What is in the file is listed in README.md beside it.

    python3 generate.py [FILE]        default: changes.jsonl beside this program
"""

import base64
import datetime
import json
import os
import sys
import uuid

EVENTS = 20_000
BEGIN = datetime.datetime(2026, 1, 5, 8, 0, tzinfo=datetime.timezone.utc)
DATABASE = {"connector": "postgresql", "db": "desk"}
KEYS = {
    "customers": ["id"],
    "products": ["sku"],
    "orders": ["id"],
    "order_lines": ["order_id", "line"],
    "payments": ["id"],
    "stock": ["sku", "warehouse"],
    "carts": ["id"],
}


class Dice:
    """SplitMix64: small, good enough, and the same in every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return z ^ (z >> 31)

    def below(self, n):
        return self.bits() % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def one_in(self, n):
        return self.below(n) == 0

    def pick(self, items):
        return items[self.below(len(items))]

    def bytes(self, n):
        return b"".join(self.bits().to_bytes(8, "big") for _ in range((n + 7) // 8))[:n]


FIRST = ["Ana", "Björn", "Chloé", "Đặng", "Émile", "Fatma", "Giorgos", "Hana", "Ívar", "José", "Kłara", "Łukasz", "Mei",
         "Nguyễn", "Ólafur", "Priya", "Quentin", "Renée", "Søren", "Tomáš", "Uğur", "Věra", "Wei", "Ximena", "Yūki", "Zoë",
         "张伟", "さくら", "Мария", "Γιώργος", "يوسف", "नेहा", "李娜", "🦜 Urutau"]
LAST = ["Almeida", "Bergström", "Çelik", "Dvořák", "Eriksson", "Fernández", "García", "Håkansson", "Ibrahim", "Jørgensen",
        "Kowalski", "Lefèvre", "Müller", "Nuñez", "O'Brien", "Păun", "Quispe", "Rossi", "Śliwa", "Tanaka", "Ünal", "Vogel",
        "王", "山田", "Иванова", "Παππάς", "حسن", "शर्मा"]
STREETS = ["Rua das Flores", "Hauptstraße", "Nyhavn", "Ulica Długa", "Via Roma", "King's Road", "Calle Mayor", "新宿通り"]
CITIES = [("Lisboa", "PT"), ("Köln", "DE"), ("København", "DK"), ("Łódź", "PL"), ("Roma", "IT"), ("York", "GB"), ("Málaga", "ES"), ("東京", "JP")]
THINGS = ["Kettle", "Lamp", "Notebook", "Backpack", "Headphones", "Clock", "Scarf", "Mug", "Tripod", "Blanket", "Speaker", "Globe"]
COLOURS = ["red", "teal", "ochre", "white", "grün", "azul", "黒"]
TAGS = ["new", "sale", "fragile", "gift", "bulk", "küche", "eco", "αβγ"]
WAREHOUSES = [1, 2, 3, 7]
STEPS = ["paid", "packed", "shipped", "delivered"]
WORDS = ("the parcel was left with a neighbour who says that nobody rang and the rain had not yet reached the second floor "
         "where the cat sleeps „Gänsefüßchen“ naïve façade 你好 мир ñandú — tab\tquote\" backslash\\ newline\n end").split(" ")


def money(cents):
    """A decimal as text: two digits after the point, as a connector with decimals as strings writes it."""
    sign, cents = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"


def base64_of(data):
    return base64.b64encode(data).decode("ascii")


class Desk:
    """The database: its tables as they are now, and the log that it writes."""

    def __init__(self, out):
        self.out = out
        self.dice = Dice(20260105)
        self.now = BEGIN
        self.rows = {table: {} for table in KEYS}
        self.events = 0
        self.transaction = 1000
        self.lsn = 50_000_000
        self.order_event = 0
        self.next_customer = 1
        self.next_order = 70_001
        self.gone = []
        self.marked = None
        self.emptied = 0

    # The log.

    def line(self, event):
        # Some writers escape everything beyond ASCII, most do not: a reader must not care.
        text = json.dumps(event, separators=(",", ":"), ensure_ascii=self.transaction % 13 == 0)
        self.out.write(text + "\n")

    def millis(self):
        return int(self.now.timestamp()) * 1000 + self.now.microsecond // 1000

    def begin(self, marked=False):
        self.transaction += self.dice.between(1, 3)
        self.now += datetime.timedelta(microseconds=self.dice.between(1, 1_400_000_000))
        self.marked = {"events": 0, "tables": {}} if marked else None
        if marked:
            self.line({"status": "BEGIN", "id": f"{self.transaction}:{self.lsn}", "event_count": None, "data_collections": None, "ts_ms": self.millis()})

    def end(self):
        if self.marked is None:
            return
        collections = [{"data_collection": f"shop.{table}", "event_count": n} for table, n in self.marked["tables"].items()]
        self.line({"status": "END", "id": f"{self.transaction}:{self.lsn}", "event_count": self.marked["events"],
                   "data_collections": collections, "ts_ms": self.millis()})
        self.marked = None

    def event(self, op, table, before, after):
        self.lsn += self.dice.between(40, 900)
        self.events += 1
        envelope = {"before": before, "after": after,
                    "source": {**DATABASE, "schema": "shop", "table": table, "txId": self.transaction, "lsn": self.lsn, "ts_ms": self.millis()},
                    "op": op, "ts_ms": self.millis() + 7}
        if self.marked is not None:
            self.marked["events"] += 1
            order = self.marked["tables"][table] = self.marked["tables"].get(table, 0) + 1
            # As PostgreSQL's connector writes it: only the part before the colon is the transaction's.
            envelope["transaction"] = {"id": f"{self.transaction}:{self.lsn}", "total_order": self.marked["events"], "data_collection_order": order}
        self.line(envelope)

    # What statements do.

    def key(self, table, row):
        return tuple(row[column] for column in KEYS[table])

    def key_image(self, table, row):
        """What is logged of an old row: its key, and null for what the log does not hold."""
        return {column: value if column in KEYS[table] else None for column, value in row.items()}

    def insert(self, table, row, op="c"):
        assert self.key(table, row) not in self.rows[table]
        self.rows[table][self.key(table, row)] = row
        self.event(op, table, None, row)

    def update(self, table, row, **changes):
        new = {**row, **changes}
        moved = self.key(table, new) != self.key(table, row)
        del self.rows[table][self.key(table, row)]
        assert self.key(table, new) not in self.rows[table]
        self.rows[table][self.key(table, new)] = new
        self.event("u", table, self.key_image(table, row) if moved else None, new)
        return new

    def delete(self, table, row):
        del self.rows[table][self.key(table, row)]
        self.event("d", table, self.key_image(table, row), None)

    def truncate(self, table):
        self.rows[table].clear()
        self.event("t", table, None, None)

    def note_order(self, order, what, detail=None):
        """The append-only table: one row for everything that happens to an order."""
        self.order_event += 1
        row = {"seq": self.order_event, "order_id": order["id"], "what": what, "detail": detail, "at": self.instant()}
        self.event("c", "order_events", None, row)

    def any(self, table):
        rows = self.rows[table]
        return next(islice_from(rows, self.dice.below(len(rows)))) if rows else None

    # Values.

    def instant(self, back_days=0):
        """A point in time, with a zone: UTC mostly, an offset now and then."""
        at = self.now - datetime.timedelta(days=back_days)
        if self.dice.one_in(9):
            zone = datetime.timezone(datetime.timedelta(minutes=self.dice.pick([-480, -210, 60, 120, 345, 540])))
            return at.astimezone(zone).isoformat(timespec="microseconds")
        return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"

    def wall_clock(self):
        """A time without a zone, with the digits that it happens to have."""
        at = self.now.replace(tzinfo=None)
        return at.isoformat(timespec=self.dice.pick(["seconds", "milliseconds", "microseconds", "microseconds"]))

    def words(self, n):
        return " ".join(self.dice.pick(WORDS) for _ in range(n))

    def new_customer(self, identifier=None):
        dice = self.dice
        if identifier is None:
            identifier, self.next_customer = self.next_customer, self.next_customer + dice.between(1, 3)
        city, country = dice.pick(CITIES)
        address = {"street": dice.pick(STREETS), "number": dice.between(1, 250), "city": city, "country": country,
                   "geo": {"lat": dice.between(-900000, 900000) / 10000, "lon": dice.between(-1800000, 1800000) / 10000},
                   "floors": [dice.between(0, 9) for _ in range(dice.below(3))], "lift": dice.pick([True, False, None])}
        return {
            "id": identifier,
            "email": f"{'ABCDEFGHIJ'[dice.below(10)].lower()}{identifier}@example.net",
            "name": f"{dice.pick(FIRST)} {dice.pick(LAST)}",
            "vip": dice.one_in(7),
            "birthday": None if dice.one_in(3) else (datetime.date(1935, 1, 1) + datetime.timedelta(days=dice.below(27_000))).isoformat(),
            "balance": money(dice.between(-50_000, 900_000)),
            "address": json.dumps(address, ensure_ascii=False),
            "photo": None if not dice.one_in(6) else base64_of(dice.bytes(dice.pick([0, 1, 3, 16, 61]))),
            "notes": None if not dice.one_in(5) else "" if dice.one_in(4) else self.words(dice.between(2, 12)),
            "created_at": self.instant(back_days=dice.below(400)),
            "updated_at": None,
        }

    def new_product(self, number):
        dice = self.dice
        return {
            "sku": f"{dice.pick(THINGS)[:3].upper()}-{number:04d}",
            "title": f"{dice.pick(COLOURS)} {dice.pick(THINGS)}",
            "price": money(dice.between(99, 99_999)),
            "weight_kg": dice.between(1, 40_000) / 1000,
            "tags": None if dice.one_in(6) else [dice.pick(TAGS) for _ in range(dice.below(4))],
            "attributes": {"size": {"w": dice.between(1, 90), "h": dice.between(1, 90)}, "materials": [dice.pick(COLOURS) for _ in range(2)],
                           "warranty_months": dice.pick([None, 12, 24]), "ratio": dice.between(1, 999) / 100},
            "available_from": (datetime.date(2025, 1, 1) + datetime.timedelta(days=dice.below(500))).isoformat(),
            "support_until": f"{dice.between(7, 19):02d}:{dice.below(60):02d}:{dice.below(60):02d}",
            "discontinued": False,
        }

    # What happens at the desk.

    def sign_up(self):
        self.begin()
        self.insert("customers", self.new_customer(self.gone.pop() if self.gone and self.dice.one_in(2) else None))

    def change_customer(self):
        customer, dice = self.any("customers"), self.dice
        self.begin()
        changes = {"updated_at": self.wall_clock()}
        if dice.one_in(2):
            changes["balance"] = money(dice.between(-99_999_999_99, 99_999_999_99) if dice.one_in(20) else dice.between(-9_999, 99_999))
        if dice.one_in(4):
            changes["notes"] = None if dice.one_in(2) else self.words(dice.between(1, 15))
        if dice.one_in(6):
            changes["vip"] = not customer["vip"]
        self.update("customers", customer, **changes)

    def forget_customer(self):
        customer = self.any("customers")
        self.begin()
        self.delete("customers", customer)
        self.gone.append(customer["id"])

    def renumber_customer(self):
        """A key changes: as one update whose key differs, or as a delete and a create in one transaction."""
        customer = self.any("customers")
        self.begin(marked=self.dice.one_in(3))
        number = self.next_customer + 500_000
        self.next_customer += 1
        if self.dice.one_in(2):
            self.update("customers", customer, id=number, updated_at=self.wall_clock())
        else:
            self.delete("customers", customer)
            self.insert("customers", {**customer, "id": number})
        self.end()

    def swap_stock(self):
        """Two rows change places, by way of a third: their keys in three steps, within one transaction."""
        product = self.any("products")["sku"]
        here = [row for (sku, warehouse), row in self.rows["stock"].items() if sku == product and warehouse >= 0][:2]
        if len(here) < 2:
            return
        self.begin(marked=True)
        first, second = here
        parked = self.update("stock", first, warehouse=-1)
        self.update("stock", second, warehouse=first["warehouse"])
        self.update("stock", parked, warehouse=second["warehouse"])
        self.end()

    def place_order(self):
        dice, customer = self.dice, self.any("customers")
        self.begin(marked=dice.one_in(5))
        number, self.next_order = self.next_order, self.next_order + 1
        lines = [self.any("products") for _ in range(dice.between(1, 4))]
        quantities = [dice.between(1, 5) for _ in lines]
        total = sum(int(product["price"].replace(".", "")) * quantity for product, quantity in zip(lines, quantities))
        order = {"id": number, "customer_id": customer["id"], "status": "placed", "total": money(total), "placed_at": self.instant(),
                 "deliver_on": None if dice.one_in(3) else (self.now + datetime.timedelta(days=dice.between(1, 20))).date().isoformat(),
                 "note": self.words(dice.between(1, 8)) if dice.one_in(6) else None}
        self.insert("orders", order)
        for line, (product, quantity) in enumerate(zip(lines, quantities), start=1):
            self.insert("order_lines", {"order_id": number, "line": line, "sku": product["sku"], "quantity": quantity,
                                        "price": product["price"], "gift": dice.one_in(8), "placed_at": order["placed_at"]})
        for sku in dict.fromkeys(product["sku"] for product in lines):
            stock = self.rows["stock"].get((sku, dice.pick(WAREHOUSES)))
            if stock is not None:
                self.update("stock", stock, quantity=stock["quantity"] - 1)
        self.note_order(order, "placed")
        self.end()

    def pay_order(self):
        order = self.any("orders")
        if order is None or order["status"] != "placed":
            return
        dice = self.dice
        self.begin(marked=dice.one_in(4))
        self.insert("payments", {
            "id": str(uuid.UUID(bytes=dice.bytes(16), version=4)),
            "order_id": order["id"],
            "amount": order["total"] + f"{dice.below(100):02d}",
            "rate": dice.pick(["1.0000000000", "0.9213450000", "163.2500000001", "-0.0000000001"]),
            "method": dice.pick(["card", "transfer", "cash", "voucher"]),
            "paid_at": self.wall_clock(),
            "receipt": base64_of(dice.bytes(dice.below(40))),
            "score": dice.pick([0.1, -0.0, 1e-300, 1.7976931348623157e308, 3.5, None]),
            "terminal": dice.pick([None, 9007199254740993, -9223372036854775808, 9223372036854775807, 12]),
        })
        self.update("orders", order, status="paid")
        self.note_order(order, "paid", None if dice.one_in(2) else self.words(3))
        self.end()

    def advance_order(self):
        order = self.any("orders")
        if order is None or order["status"] not in STEPS[:-1]:
            return
        self.begin()
        status = STEPS[STEPS.index(order["status"]) + 1]
        self.update("orders", order, status=status)
        self.note_order(order, status)

    def cancel_order(self):
        order = self.any("orders")
        if order is None or order["status"] != "placed":
            return
        self.begin(marked=self.dice.one_in(3))
        lines = [row for line in range(1, 5) if (row := self.rows["order_lines"].get((order["id"], line)))]
        for row in lines:
            self.delete("order_lines", row)
        self.delete("orders", order)
        self.note_order(order, "cancelled")
        if self.dice.one_in(3):  # A mistake, and mended in the same transaction.
            self.insert("orders", {**order, "note": "restored"})
            for row in lines[:1]:
                self.insert("order_lines", row)
            self.note_order(order, "restored")
        self.end()

    def revalue(self):
        """One statement over two tables: a long transaction."""
        self.begin(marked=True)
        for product in list(self.rows["products"].values()):
            cents = int(product["price"].replace(".", ""))
            self.update("products", product, price=money(max(1, cents + self.dice.between(-40, 60))))
        for stock in list(self.rows["stock"].values()):
            self.update("stock", stock, unit_cost=f"{self.dice.between(1, 99_999)}.{self.dice.below(1000):03d}")
        self.end()

    def retitle(self):
        product, dice = self.any("products"), self.dice
        self.begin()
        self.update("products", product, title=f"{dice.pick(COLOURS)} {dice.pick(THINGS)}", discontinued=dice.one_in(5),
                    tags=None if dice.one_in(5) else [dice.pick(TAGS) for _ in range(dice.below(5))])

    def fill_cart(self):
        dice = self.dice
        self.begin()
        identifier = dice.between(1, 400)
        cart = {"id": identifier, "customer_id": self.any("customers")["id"], "items": dice.between(1, 9), "opened_at": self.wall_clock()}
        old = self.rows["carts"].get((identifier,))
        if old is None:
            self.insert("carts", cart)
        elif dice.one_in(4):
            self.delete("carts", old)
        else:
            self.update("carts", old, **cart)

    def empty_carts(self):
        self.begin()
        self.truncate("carts")
        self.emptied += 1

    def long_letter(self):
        customer = self.any("customers")
        self.begin()
        self.update("customers", customer, notes=self.words(self.dice.pick([900, 2500, 9000])), updated_at=self.wall_clock())

    def heartbeat(self):
        """A table that the pipeline does not name."""
        self.begin()
        self.event("u", "heartbeat", None, {"id": 1, "at": self.instant()})

    # The story.

    def first_snapshot(self):
        """What was there when the connector was started: rows that were read, not changed."""
        self.begin()
        for _ in range(400):
            self.insert("customers", self.new_customer(), op="r")
        for number in range(1, 151):
            self.insert("products", self.new_product(number), op="r")
        for product in list(self.rows["products"].values()):
            for warehouse in WAREHOUSES[: self.dice.between(1, 4)]:
                self.insert("stock", {"sku": product["sku"], "warehouse": warehouse, "quantity": self.dice.between(0, 500),
                                      "unit_cost": f"{self.dice.between(1, 999)}.{self.dice.below(1000):03d}"}, op="r")

    def run(self):
        self.first_snapshot()
        everyday = ([self.place_order] * 26 + [self.pay_order] * 22 + [self.advance_order] * 26 + [self.fill_cart] * 16 + [self.change_customer] * 14
                    + [self.sign_up] * 5 + [self.retitle] * 4 + [self.cancel_order] * 4 + [self.renumber_customer] * 2 + [self.forget_customer] * 2
                    + [self.swap_stock] * 2 + [self.heartbeat])
        rare = [(5_000, self.revalue), (8_000, self.empty_carts), (9_500, self.long_letter), (12_000, self.long_letter), (14_000, self.empty_carts),
                (16_000, self.revalue), (18_000, self.long_letter)]
        while self.events < EVENTS:
            if rare and self.events >= rare[0][0]:
                rare.pop(0)[1]()
            else:
                self.dice.pick(everyday)()
        assert not rare and self.emptied == 2


def islice_from(rows, index):
    """The row number `index`, in order of insertion."""
    for number, row in enumerate(rows.values()):
        if number == index:
            yield row


def main():
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "changes.jsonl")
    path = sys.argv[1] if len(sys.argv) > 1 else default
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        Desk(out).run()


if __name__ == "__main__":
    main()
