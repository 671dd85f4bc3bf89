"""How late events are, held against the events themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.check import check
from weir.definitions.durations import format_duration
from weir.definitions.metric import Metric
from weir.lateness import BEYOND, DAY, EDGES_MS, OFFERED_MS, Lateness
from weir.problems import ProblemError

METRIC = {"events": {"type": "t"}, "aggregates": ["count"], "keep": {"10s": "300d"}}

LATE_MS = st.lists(
    st.one_of(st.integers(-DAY, 200 * DAY), st.sampled_from(EDGES_MS), st.integers(0, 90_000)),
    max_size=60,
)


def bucket_of(late_ms: int) -> str:
    """Return the bucket of an event: its upper edge in milliseconds, or `BEYOND`."""
    at = bisect_left(EDGES_MS, late_ms)
    return str(EDGES_MS[at]) if at < len(EDGES_MS) else BEYOND


@pytest.mark.parametrize(
    ("late_ms", "bucket"),
    [
        (-5_000, "0"),
        (0, "0"),
        (1, "1000"),
        (1_000, "1000"),
        (1_001, "2000"),
        (60_000, "60000"),
        (100 * DAY, str(100 * DAY)),
        (100 * DAY + 1, BEYOND),
    ],
)
def test_an_event_on_an_edge_lies_below_it(late_ms: int, bucket: str) -> None:
    """So what is later than an edge is exactly what lies in the buckets above."""
    assert bucket_of(late_ms) == bucket


@given(LATE_MS)
def test_what_is_later_than_an_edge_is_exact(late_ms: list[int]) -> None:
    """Counted from the buckets, and from the events one by one."""
    told = Lateness(Counter(map(bucket_of, late_ms)))

    assert told.events == len(late_ms)
    for edge in EDGES_MS:
        assert told.later_than(edge) == sum(late > edge for late in late_ms)


@given(LATE_MS.filter(len), st.sampled_from([0.5, 0.99, 1.0]))
def test_a_percentile_is_the_next_edge(late_ms: list[int], share: float) -> None:
    """It is the smallest edge within which the share lies, or none."""
    told = Lateness(Counter(map(bucket_of, late_ms))).at_most_ms(share)
    fitting = [e for e in EDGES_MS if sum(ms <= e for ms in late_ms) >= share * len(late_ms)]

    assert told == (min(fitting) if fitting else None)


@given(LATE_MS, st.integers(0, 3_000), st.integers(0, 3), st.sampled_from(OFFERED_MS))
def test_what_is_suggested_would_have_lost_less_than_one_of_a_thousand(
    late_ms: list[int], prompt: int, rare: int, longest_ms: int
) -> None:
    """It is the shortest length offered for which that is so, by the events one by one."""
    events = [*late_ms, *[-1] * prompt, *[40_000] * rare]
    told = Lateness(Counter(map(bucket_of, events))).suggested_ms(longest_ms)
    fitting = [e for e in OFFERED_MS if 1_000 * sum(ms > e for ms in events) < len(events)]

    assert told == min((e for e in fitting if e <= longest_ms), default=None)


@pytest.mark.parametrize("edge_ms", OFFERED_MS)
def test_what_is_offered_can_be_written(edge_ms: int) -> None:
    """Each length is taken as an allowed lateness."""
    checked = check("metric", "m", {**METRIC, "allowed_lateness": format_duration(edge_ms)})
    assert isinstance(checked.model, Metric)
    assert checked.model.lateness_ms == edge_ms


def test_all_that_can_be_written_is_offered() -> None:
    """The next edge is longer than any metric may allow."""
    longer = format_duration(EDGES_MS[len(OFFERED_MS)])
    with pytest.raises(ProblemError) as refused:
        check("metric", "m", {**METRIC, "allowed_lateness": longer})
    assert [place["pointer"] for place in refused.value.errors] == ["/allowed_lateness"]


def test_without_events_nothing_is_said() -> None:
    """There is no median of nothing."""
    assert Lateness({}).at_most_ms(0.5) is None
    assert Lateness({}).later_than(0) == 0
