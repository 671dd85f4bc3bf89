"""A fork of the fold: what would follow from records, before they are written."""

from __future__ import annotations

import json
from typing import Any

from weir.definitions.fold import Definitions
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    TakeOver,
    activation_record,
    aside_record,
    delete_record,
    put_record,
    start_record,
    takeover_record,
)

TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"
FIRST = put_record(Edit("acme", "metric", "m", None, "x", 0), TEXT)
START = start_record(DriverStart("a", 1, "start"), at_ms=0)
BEGUN = activation_record(
    Counting(0, "acme", "m", 1, {0: 4}, fills=True), op="start", fence=1, at_ms=0
)
LATER = (
    takeover_record(TakeOver(0, None, {0: 9}, None), fence=1, at_ms=0),
    aside_record(0, "no plan", fence=1, at_ms=0),
    put_record(Edit("acme", "metric", "m", 1, "x", 0), TEXT),
    delete_record(Edit("acme", "metric", "m", 2, "x", 0)),
    start_record(DriverStart("b", 1, "start"), at_ms=0),
)


def fold_of(*records: NewRecord) -> Definitions:
    """Return the fold of some records."""
    fold = Definitions()
    _apply(fold, *records)
    return fold


def _apply(fold: Definitions, *records: NewRecord) -> None:
    for record in records:
        change = fold.apply(fold.next_offset, *record)
        assert change is not None
        assert change.applied, change.note


def known(fold: Definitions) -> dict[str, Any]:
    """Return all that a fold knows, but how far it has come within a bundle."""
    return {name: value for name, value in vars(fold).items() if name not in ("_held", "newer")}


def test_each_goes_its_own_way() -> None:
    """What the fork is given is as if it had followed; the fold itself never sees it."""
    before = (FIRST, START, BEGUN)
    fold = fold_of(*before)
    twin = fold.fork()
    assert known(twin) == known(fold)
    _apply(twin, *LATER)
    assert known(fold) == known(fold_of(*before))
    assert known(twin) == known(fold_of(*before, *LATER))


def test_a_bundle_that_is_being_read_goes_on() -> None:
    """Its end comes after the question: the fold itself has lost nothing of it."""
    fold = fold_of(START)
    told = []
    for at, name in enumerate("ab"):
        text = TEXT.replace("name: m", f"name: {name}")
        edit = json.loads(put_record(Edit("acme", "metric", name, None, "x", 0), text).value)
        edit |= {"v": 2, "bundle": {"id": "b", "at": at, "of": 2}}
        told.append(fold.apply(fold.next_offset, f"acme/metric/{name}", edit))
        _apply(fold.fork(), aside_record(9, "no plan", fence=0, at_ms=0))
    assert [one.name for one in fold.current("acme")] == ["a", "b"]
    assert [change and change.lost for change in told] == [(), ()]
