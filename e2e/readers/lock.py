#!/usr/bin/env python3
"""Holds the lock of a warehouse's catalogue until it is killed: a commit that comes by waits at it.

    lock.py --warehouse DIR --mode read|write

`write` keeps others from changing the catalogue, `read` from reading it, too. Prints 'locked' once it has the lock.
"""

import argparse
import signal
import sqlite3
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--mode", choices=["read", "write"], required=True)
    asked = parser.parse_args()
    catalog = sqlite3.connect(f"{asked.warehouse}/catalog.db", timeout=60, isolation_level=None)
    journal = catalog.execute("PRAGMA journal_mode").fetchone()[0]
    if asked.mode == "read" and journal == "wal":
        print("the catalogue is in WAL mode, where nothing keeps others from reading", file=sys.stderr)
        return 2
    catalog.execute("BEGIN EXCLUSIVE" if asked.mode == "read" else "BEGIN IMMEDIATE")
    print("locked", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
