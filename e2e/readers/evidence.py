#!/usr/bin/env python3
"""Tells from a warehouse's files alone how far its last commits came: what lies there that no snapshot names.

    evidence.py --warehouse DIR --namespace NS

Prints JSON: for each table of the catalogue

    pointer     the metadata file that the catalogue names
    unnamed     data files (.parquet) and vectors (.puffin) on disk that no kept snapshot's manifests name
    unswapped   metadata files on disk that are newer than the one that the catalogue names
    commit      the commit id of the current snapshot's summary
"""

import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True

import warehouse  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    asked = parser.parse_args()
    reader = warehouse.PyIceberg(asked.warehouse)
    print(json.dumps({name: look(reader.table(asked.namespace, name)) for name in reader.tables(asked.namespace)}, indent=1))
    return 0


def look(table):
    pointer = plain(table.metadata_location)
    folder = plain(table.metadata.location)
    on_disk = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    named = {plain(path) for path in named_files(table)}
    current = table.current_snapshot()
    return {
        "pointer": pointer,
        "unnamed": {suffix: sorted(path for path in on_disk if path.endswith("." + suffix) and path not in named) for suffix in ("parquet", "puffin")},
        "unswapped": sorted(path for path in on_disk if path.endswith(".metadata.json") and version(path) > version(pointer)),
        "commit": current.summary.additional_properties.get("urutau.commit-id") if current else None,
    }


def named_files(table):
    for snapshot in table.metadata.snapshots:
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                yield entry.data_file.file_path


def version(path):
    """The number at the beginning of a metadata file's name."""
    return int(re.match(r"\d+", os.path.basename(path))[0])


def plain(location):
    return location.removeprefix("file://")


if __name__ == "__main__":
    sys.exit(main())
