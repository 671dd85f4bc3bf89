"""What is read out of an outcome of an audit: of what it lacks all, or some, and why."""

from __future__ import annotations

from typing import Any

import pytest
from weir.audited import LEDGER, Bound, Lack, bound_of, compared_in_part, lack_of, not_compared

WHOLE = {"panes": 40, "left_out": 0, "overtaken": 0}


@pytest.mark.parametrize(
    ("told", "lack"),
    [
        (WHOLE, None),
        ({"minutes": 20, "left_out": 0, "overtaken": 0}, None),
        (WHOLE | {"left_out": 1}, Lack.LEFT_OUT),
        (WHOLE | {"left_out": 1, "overtaken": 1}, Lack.LEFT_OUT),
        (WHOLE | {"overtaken": 1}, Lack.OVERTAKEN),
        (WHOLE | {"panes": 0}, Lack.NOT_DRAWN),
        ({"panes": 7}, None),
        ({}, Lack.NOT_DRAWN),
    ],
)
def test_what_is_lacking(told: dict[str, int], lack: Lack | None) -> None:
    """What became of panes that were drawn, else that none was; an earlier release told less."""
    assert lack_of(told) is lack


def test_what_was_not_compared_at_all_is_apart_from_what_was_in_part() -> None:
    """Of metrics and of the ledger; a record keeps the first hundred of each list."""
    outcome: dict[str, Any] = {
        "not_compared": ["none", "large", "beyond the record", LEDGER],
        "metrics": [
            {"metric": "whole", **WHOLE},
            {"metric": "none", **WHOLE, "panes": 0},
            {"metric": "large", **WHOLE, "panes": 0, "left_out": 40},
            {"metric": "some", **WHOLE, "overtaken": 2},
        ],
        "ledger": {"minutes": 0, "left_out": 0, "overtaken": 20},
    }
    assert not_compared(outcome) == {
        "none": Lack.NOT_DRAWN,
        "large": Lack.LEFT_OUT,
        "beyond the record": Lack.NOT_DRAWN,
        LEDGER: Lack.OVERTAKEN,
    }
    assert compared_in_part(outcome) == ["some"]
    assert (not_compared({}), compared_in_part({})) == ({}, [])


@pytest.mark.parametrize(
    ("said", "bound"), [("records", Bound.RECORDS), (None, None), ("of a later release", None)]
)
def test_what_bounds_an_audit(said: str | None, bound: Bound | None) -> None:
    """What this release does not know says nothing, and breaks nothing."""
    assert bound_of({"bounded_by": said}) is bound
