"""The tail's filter: types with a star, fields of the data, text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.live.messages import TailFilter
from weir.problems import ProblemError
from weir_dashboard.live.tail_filter import Filter

EVENT = {
    "id": "o-1",
    "type": "order.placed",
    "source": "urn:shop",
    "data": json.dumps({"total": 12.5, "user": {"plan": "pro"}, "ok": True, "n": None}),
    "cut": False,
}


def shows(event: dict[str, Any] = EVENT, **wanted: Any) -> bool:
    """Tell whether a filter shows an event."""
    return Filter(TailFilter(**wanted)).matches(event)


class TestFilter:
    @pytest.mark.parametrize(
        ("pattern", "shown"),
        [
            ("order.placed", True),
            ("order.*", True),
            ("*", True),
            ("*.placed", True),
            ("order", False),
            ("page.*", False),
            ("order.+", False),
        ],
    )
    def test_type(self, pattern: str, shown: bool) -> None:
        """A star stands for anything; all else is literal."""
        assert shows(type=pattern) is shown

    @pytest.mark.parametrize(
        ("condition", "shown"),
        [
            (["data.total", ">", 10], True),
            (["data.total", ">", 12.5], False),
            (["data.total", ">=", 12.5], True),
            (["data.total", "=", "12.5"], False),
            (["data.total", "!=", "12.5"], True),
            (["data.user.plan", "=", "pro"], True),
            (["data.user.plan", "<", "q"], True),
            (["data.ok", "=", True], True),
            (["data.ok", "=", 1], False),
            (["data.ok", ">", 0], False),
            (["data.n", "=", None], True),
            (["data.missing", "!=", 1], False),
            (["data.total.deeper", "=", 1], False),
        ],
    )
    def test_where(self, condition: list[Any], shown: bool) -> None:
        """Fields are compared with their own type; what is absent never matches."""
        assert shows(where=[condition]) is shown

    def test_text_is_found_anywhere_in_any_case(self) -> None:
        """Text is looked for in data, type, id, subject and source."""
        assert shows(text="PRO")
        assert shows(text="urn:shop")
        assert not shows(text="nowhere")

    def test_cut_data_matches_no_field(self) -> None:
        """Of an event whose data was cut no field is known."""
        assert not shows({**EVENT, "cut": True}, where=[["data.total", ">", 10]])
        assert not shows({**EVENT, "data": '{"total": 1'}, where=[["data.total", ">", 0]])

    def test_a_path_outside_the_data_is_refused(self) -> None:
        """A condition names a field of the data, and the refusal says so."""
        with pytest.raises(ProblemError, match="must name a field such as"):
            shows(where=[["id", "=", "o-1"]])
