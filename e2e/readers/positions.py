#!/usr/bin/env python3
"""Compares every stored position with the rows that it stands beside: never ahead of the data, never behind.

    positions.py --warehouse DIR --namespace NS --changes FILE --tables expected/X.json --pipeline NAME [--snapshots N]

PyIceberg reads the snapshots' summaries and the rows of each table as they were at each of its newest N retained snapshots
(default: all). At each of them the rows must be what the change file says up to the cut that the summary holds. Positions never
go back from one snapshot to the next. The table's property names the newest snapshot, and its state is that of the summary or
a later one of the same rows. The pipeline's record, in its control table, covers no event of a table that the table's own
state does not cover.

Ends with 0 if all this is so, 1 if not (each fault on a line), 2 if it could not look.
"""

import argparse
import json
import sys

sys.dont_write_bytecode = True

import compare  # noqa: E402
import fold  # noqa: E402
import warehouse  # noqa: E402

STATE = "urutau.state"
SNAPSHOT = "urutau.snapshot"
RECORD = "urutau.pipeline-state"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--changes", required=True)
    parser.add_argument("--tables", required=True)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--snapshots", type=int)
    asked = parser.parse_args()
    with open(asked.tables, encoding="utf-8") as file:
        descriptions = json.load(file)
    reader = warehouse.PyIceberg(asked.warehouse)
    there = reader.tables(asked.namespace)
    log, faults, cuts = fold.Log(asked.changes), [], {}
    for target, description in descriptions.items():
        if target not in there:
            print(f"{target}: not made yet")
            continue
        history = fold.Table(log, description)
        looked, newest, wrong = walk(reader, asked.namespace, target, description, history, asked.snapshots)
        cuts[target] = (newest, history)
        faults += [f"{target}: {line}" for line in wrong]
        print(f"{target}: {looked} snapshots, {len(wrong)} faults")
    faults += record_is_covered(reader, asked, descriptions, cuts)
    for line in faults:
        print(line)
    return 1 if faults else 0


def walk(reader, namespace, target, description, history, snapshots_max):
    """Looks at a table's snapshots from the oldest kept one to the newest. (how many, the newest cut, faults)"""
    table = reader.table(namespace, target)
    snapshots = lineage(table)
    faults, cut = [], None
    for number, snapshot in enumerate(snapshots):
        text = snapshot.summary.additional_properties.get(STATE)
        if text is None:
            faults.append(f"snapshot {snapshot.snapshot_id}: no {STATE} in its summary")
            continue
        earlier, cut = cut, cut_of(json.loads(text)["cut"])
        if earlier is not None and cut.upto < earlier.upto:
            faults.append(f"snapshot {snapshot.snapshot_id}: its position {cut.upto} is before {earlier.upto}, its parent's")
        if snapshots_max is not None and number < len(snapshots) - snapshots_max:
            continue
        rows = reader.rows(namespace, target, description["columns"], snapshot.snapshot_id)
        differences = compare.rows_differ(description, history.rows(cut), rows)
        faults += [f"snapshot {snapshot.snapshot_id} at {cut.upto}+{cut.within}: {line}" for line in differences[:3]]
    faults += property_is_of_the_newest(table, snapshots, cut)
    stored = table.properties.get(STATE)
    head = cut_of(json.loads(stored)["cut"]) if stored else cut
    if head is not None:
        rows = reader.rows(namespace, target, description["columns"])
        faults += [f"its property at {head.upto}+{head.within}: {line}" for line in compare.rows_differ(description, history.rows(head), rows)[:3]]
    return len(snapshots), head, faults


def property_is_of_the_newest(table, snapshots, cut):
    stored, named = table.properties.get(STATE), table.properties.get(SNAPSHOT)
    if not snapshots:
        return [f"the property {SNAPSHOT} names {named}, and there is no snapshot"] if named else []
    if stored is None or named != str(snapshots[-1].snapshot_id):
        return [f"the property {SNAPSHOT} names {named}, the newest snapshot is {snapshots[-1].snapshot_id}"]
    property_cut = cut_of(json.loads(stored)["cut"])
    return ["the property's position is before that of the newest snapshot"] if cut is not None and property_cut.upto < cut.upto else []


def lineage(table):
    """The snapshots from which the current one comes, as far as they are kept, the oldest first."""
    found, snapshot = [], table.current_snapshot()
    while snapshot is not None:
        found.insert(0, snapshot)
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
    return found


def cut_of(stored):
    within = [(entry["at"], entry["last"]["major"]) for entry in stored.get("within", [])]
    return fold.Cut(offset_of(stored["upto"]), within)


def offset_of(position):
    """The offset in a position of a log that is one file: '' is its beginning, else 'name:offset' or 'offset'."""
    return int(position.rsplit(":", 1)[-1]) if position else 0


def record_is_covered(reader, asked, descriptions, cuts):
    control = f"urutau_{asked.pipeline}"
    if control not in reader.tables(asked.namespace):
        return [f"there is no control table {control}"] if cuts else []
    table = reader.table(asked.namespace, control)
    text = table.properties.get(RECORD)
    if text is None:
        return [f"{control}: no {RECORD} in it"]
    record, faults = json.loads(text), []
    quiet = offset_of(record["quiet"])
    for target, (cut, history) in cuts.items():
        named = record["tables"].get(descriptions[target]["source"], {}).get("named")
        missed = [offset for offset, *_ in history.changes if named and offset < quiet and not (cut and cut.covers(offset))]
        if missed:
            faults.append(f"{target}: the pipeline's record covers the log up to {quiet}, but the table lacks {len(missed)} events below, the first at {missed[0]}")
    print(f"{control}: quiet up to {quiet}, incarnation {record['incarnation']}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
