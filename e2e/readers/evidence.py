#!/usr/bin/env python3
"""Tells from a warehouse's files alone how far its last commits came: what lies there that no snapshot names.

    evidence.py --warehouse DIR --namespace NS

Prints JSON: for each table of the catalogue

    pointer     the metadata file that the catalogue names
    unnamed     data files (.parquet) and vectors (.puffin) on disk that no kept snapshot's manifests name
    unswapped   metadata files on disk that are newer than the one that the catalogue names
    missing     files that a kept snapshot needs and that are not on disk
    commit      the commit id of the current snapshot's summary
    head        the table's newest state: its incarnation, its commit, and the runs of commits that it was built upon
"""

import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True

import warehouse  # noqa: E402

from pyiceberg.manifest import ManifestEntryStatus  # noqa: E402


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
    named, needed = named_files(table)
    current, state = table.current_snapshot(), json.loads(table.properties.get("urutau.state", "null"))
    return {
        "pointer": pointer,
        "unnamed": {suffix: sorted(path for path in on_disk if path.endswith("." + suffix) and path not in named) for suffix in ("parquet", "puffin")},
        "unswapped": sorted(path for path in on_disk if path.endswith(".metadata.json") and version(path) > version(pointer)),
        "missing": sorted(path for path in needed if not os.path.exists(path)),
        "commit": current.summary.additional_properties.get("urutau.commit-id") if current else None,
        "head": state and {name: state[name] for name in ("incarnation", "commit", "ancestors")},
    }


def named_files(table):
    """All files that the manifests of kept snapshots name, and those of them that a reader of such a snapshot opens."""
    named, needed = set(), set()
    for snapshot in table.metadata.snapshots:
        needed.add(plain(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            needed.add(plain(manifest.manifest_path))
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                path = plain(entry.data_file.file_path)
                named.add(path)
                if entry.status != ManifestEntryStatus.DELETED:
                    needed.add(path)
    return named, needed


def version(path):
    """The number at the beginning of a metadata file's name."""
    return int(re.match(r"\d+", os.path.basename(path))[0])


def plain(location):
    return location.removeprefix("file://")


if __name__ == "__main__":
    sys.exit(main())
