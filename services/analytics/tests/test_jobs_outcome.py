"""What is kept for good of the outcome of a job."""

from __future__ import annotations

import json

from weir_analytics.jobs.compare import Difference, nameless
from weir_analytics.jobs.runner import kept, shortened


def test_what_is_kept_for_good_names_nobody() -> None:
    """A series that differs, and a text of a list, are told for a day: no erasure reaches them."""
    told = Difference("amount", 3, 60, 1_200, "=anna", "n", 4, [5, 6]).told()
    listed = Difference("amount", 3, 60, 1_200, "=anna", "top", ["bert", 3, 4], ["bert", 5]).told()
    one = {"metric": "amount", "version": 3, "res_s": 60, "start_s": 1_200}
    assert kept({"verified": False, "differences": [told, listed]}) == {
        "verified": False,
        "differences": [
            one | {"field": "n", "served": 4, "recounted": [5, 6]},
            one | {"field": "top", "served": [3, 4], "recounted": 5},
        ],
    }
    assert told["series"] == "=anna"
    later = nameless({**told, "served": "anna", "recounted": ["anna", {"who": "anna"}], "of": "a"})
    assert "anna" not in json.dumps(later)


def test_a_long_outcome_says_what_it_leaves_out() -> None:
    """The log keeps the beginning of each list, Redis the whole of it for a day."""
    assert shortened({"a": [1, 2, 3], "b": [1], "c": 5}, 2) == {
        "a": [1, 2],
        "b": [1],
        "c": 5,
        "left_out": {"a": 1},
    }
