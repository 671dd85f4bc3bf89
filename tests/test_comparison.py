"""The comparison with a recount finds every difference, also those it could overlook."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import Any

import pytest
from account import MINUTE_MS, PATIENCE_S, Account, read_log
from confluent_kafka import Producer
from recount import (
    Api,
    ExactPane,
    MetricSpec,
    compare,
    compare_ledger,
    expected,
    is_too_few,
)

NOW_MS = 1_800_000_000_000
DAY = 1440
NOTHING = dict.fromkeys(("counted", "duplicate", "quarantined", "beyond_horizon", "erased"), 0)


class Served(Api):
    """Answers as the ledger and the query do, from what it is given."""

    def __init__(
        self, minutes: dict[int, int] | None = None, points: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__("http://nowhere", "key")
        self.minutes, self.points = minutes or {}, points or []
        self.asked: list[str] = []

    def call(self, method: str, path: str, body: Any = None) -> Any:  # noqa: ARG002
        """Answer one request."""
        self.asked.append(path)
        return self._ledger(path) if path.startswith("/ledger") else self._query()

    def _ledger(self, path: str) -> dict[str, Any]:
        asked = dict(re.findall(r"(\w+)=(\d+)", path))
        assert asked.keys() <= {"minutes", "to_ms"}
        assert 1 <= int(asked["minutes"]) <= DAY
        last = min(NOW_MS, int(asked.get("to_ms", NOW_MS))) // MINUTE_MS * MINUTE_MS
        starts = [last - n * MINUTE_MS for n in range(int(asked["minutes"]))]
        rows = [
            {**NOTHING, "minute_ms": start, "difference": 0, "counted": self.minutes.get(start, 0)}
            for start in starts
        ]
        return {"items": rows}

    def _query(self) -> dict[str, Any]:
        series: dict[str, Any] = {
            name: [point[name] for point in self.points]
            for name in ("value", "low", "high", "count")
        }
        return {
            "t_ms": [NOW_MS + 10_000],
            "series": [{"by": {}, "state": "f" * len(self.points), **series}],
        }


def account_of(minutes: dict[int, int]) -> Account:
    """Return the account of a log of which all counts."""
    account = Account()
    for minute, n in minutes.items():
        account.minutes[minute] = Counter(counted=n)
    return account


def minute(ago: int) -> int:
    """Return a minute so many before the newest one."""
    return NOW_MS // MINUTE_MS * MINUTE_MS - ago * MINUTE_MS


class TestLedger:
    @pytest.mark.parametrize("age", [0, 59, 60, DAY - 1, DAY, 3 * DAY])
    def test_every_minute_of_the_log_is_asked_for(self, age: int) -> None:
        """A log from hours or days ago is compared whole, and a wrong old minute is seen."""
        log = {minute(age): 5, minute(0): 7}
        assert compare_ledger(Served(log), account_of(log)).mismatches == []
        wrong = Served({**log, minute(age): 6})
        assert len(compare_ledger(wrong, account_of(log)).mismatches) == 1

    def test_a_minute_that_the_log_lacks_is_a_difference(self) -> None:
        """What is served beyond the log is found as what is missing is."""
        log = {minute(2): 5}
        served = Served({**log, minute(1): 1})
        found = compare_ledger(served, account_of(log)).mismatches
        assert found == [f"minute {minute(1)}: {{'counted': 1}}, is {{}}"]

    def test_minutes_of_which_the_log_lacks_a_part_are_left_out(self) -> None:
        """On both sides: from an instant on all is compared, and nothing before it."""
        served = Served({minute(3): 9, minute(2): 1, minute(1): 5, minute(0): 7})
        log = account_of({minute(2): 5, minute(1): 5, minute(0): 6})
        found = compare_ledger(served, log, from_ms=minute(1)).mismatches
        assert found == [f"minute {minute(0)}: {{'counted': 7}}, is {{'counted': 6}}"]

    def test_what_the_ledger_no_longer_keeps_is_left_out(self) -> None:
        """Minutes of more than 8 days ago are not asked for."""
        served = Served({minute(0): 1})
        log = account_of({minute(9 * DAY): 4, minute(0): 1})
        assert compare_ledger(served, log).mismatches == []
        assert len(served.asked) == 8


@pytest.mark.parametrize(
    ("percentile", "fewest"), [("p50", 2), ("p95", 20), ("p99", 100), ("p5", 20), ("p99.9", 1000)]
)
def test_a_percentile_needs_a_value_beyond_it(percentile: str, fewest: int) -> None:
    """The edge is where one value lies beyond the percentile on its nearer side."""
    assert is_too_few(fewest - 1, percentile)
    assert not is_too_few(fewest, percentile)


@pytest.mark.parametrize(
    ("count", "value", "equal"), [(19, None, True), (19, 1.0, False), (20, None, False)]
)
def test_no_value_is_right_only_below_the_edge(
    count: int, value: float | None, equal: bool
) -> None:
    """A missing p95 agrees with 19 events and not with 20."""
    pane = ExactPane(count, [1.0] * count)
    point = {"value": value, "low": value, "high": value, "count": count}
    spec = MetricSpec("m", "t")
    found = compare(Served(points=[point]), {(NOW_MS, ()): pane}, spec, ("p95",), 10_000)
    assert (found.mismatches == []) is equal


WHOLE, BROKEN = [1.0, 2.0, 200_001.0], [0.1, 0.2, 200_000.3]


@pytest.mark.parametrize(
    ("aggregate", "values", "is_off", "equal"),
    [
        *((name, WHOLE, 0.0, True) for name in ("count", "sum", "avg", "min", "max", "last")),
        *((name, WHOLE, 1e-7, False) for name in ("sum", "avg", "min", "max", "last")),
        *((name, BROKEN, 1e-9, False) for name in ("min", "max", "last")),
        *(("sum", BROKEN, off, equal) for off, equal in ((1e-4, True), (3e-4, False))),
        *(("avg", BROKEN, off, equal) for off, equal in ((5e-5, True), (1e-4, False))),
        *(("stddev", WHOLE, off, equal) for off, equal in ((0.05, True), (0.2, False))),
        *(("stddev", [7.0] * 3, off, equal) for off, equal in ((1e-12, True), (1e-10, False))),
        *(("rate", WHOLE, off, equal) for off, equal in ((0.0, True), (1e-9, False))),
    ],
)
def test_nothing_is_forgiven_that_is_promised(
    aggregate: str, values: list[float], is_off: float, equal: bool
) -> None:
    """Exact where floats are, a billionth of the sum elsewhere, a millionth of a deviation."""
    pane = ExactPane(len(values), values, newest=(NOW_MS, "", values[-1]))
    value = expected(pane, aggregate, 10_000) + is_off
    point = {"value": value, "low": None, "high": None, "count": len(values)}
    spec = MetricSpec("m", "t")
    found = compare(Served(points=[point]), {(NOW_MS, ()): pane}, spec, (aggregate,), 10_000)
    assert (found.mismatches == []) is equal


def test_no_value_is_wrong_where_there_is_one() -> None:
    """A missing sum agrees with nothing."""
    point = {"value": None, "low": None, "high": None, "count": 1}
    pane, spec = ExactPane(1, [0.0]), MetricSpec("m", "t")
    found = compare(Served(points=[point]), {(NOW_MS, ()): pane}, spec, ("sum",), 10_000)
    assert len(found.mismatches) == 1


@pytest.mark.kafka
def test_a_short_log_is_read_at_once(kafka: str, new_topic: Any) -> None:
    """Reading ends with the last record; it does not wait for more."""
    topic = new_topic("log", 4, {})
    producer = Producer({"bootstrap.servers": kafka})
    for n in range(8):
        producer.produce(topic, b"{}", partition=n % 4)
    producer.flush(10)
    began = time.monotonic()
    assert len(read_log(kafka, topic)) == 8
    assert time.monotonic() - began < PATIENCE_S
