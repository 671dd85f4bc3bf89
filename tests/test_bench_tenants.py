"""The tenants' benchmark compares panes one by one, and asks for exactly what the budget allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import tenants
from bars import Reached, judge
from tenant_loads import (
    GROUPS,
    PANE_MS,
    QUIET_METRIC,
    Quiet,
    differences,
    noisy_bodies,
    noisy_metric,
)
from tenants import Noisy, bars
from weir.definitions.budget import TENANT_BYTES, estimate
from weir.definitions.metric import Metric
from weir.definitions.text import parse_text

NOW_MS = 1_800_000_012_345


def test_the_quiet_input_is_the_same_bytes_each_time() -> None:
    """Two of the same moment are equal; what their panes must hold is what stands in them."""
    quiet = Quiet(NOW_MS, 20.0)
    assert quiet.bodies == Quiet(NOW_MS, 20.0).bodies
    events = [json.loads(line) for body in quiet.bodies for line in body.splitlines()]
    assert len({one["id"] for one in events}) == len(events) == 2_000
    assert sum(quiet.counts.values()) == len(events)
    assert sum(quiet.sums.values()) == sum(one["data"]["v"] for one in events)
    assert len(quiet.counts) == 2 * GROUPS


def test_the_quiet_events_are_within_the_lateness_of_their_metric() -> None:
    """Also in a second run a quarter of an hour later; and no percentile is an estimate."""
    metric = Metric.model_validate(parse_text(QUIET_METRIC))
    quiet = Quiet(NOW_MS, 140.0)
    oldest = min(start for start, _group in quiet.counts)
    assert oldest % PANE_MS == 0
    assert NOW_MS + 900_000 - oldest < metric.lateness_ms
    assert max(quiet.counts.values()) <= metric.kll_k


def test_each_pane_that_differs_is_told() -> None:
    """One that is missing, one too many and one with another number."""
    one = {("count", 0, "g1"): (1.0, 1), ("count", 0, "g2"): (2.0, 2), ("sum", 0, "g1"): (5.0, 1)}
    assert differences(one, dict(one)) == []
    other = {("count", 0, "g1"): (1.0, 1), ("sum", 0, "g1"): (6.0, 1), ("sum", 0, "g3"): (1.0, 1)}
    assert differences(one, other) == [
        "count of g2 at 1970-01-01T00:00:00+00:00: (2.0, 2) and None",
        "sum of g1 at 1970-01-01T00:00:00+00:00: (5.0, 1) and (6.0, 1)",
        "sum of g3 at 1970-01-01T00:00:00+00:00: None and (1.0, 1)",
    ]


def test_the_noisy_metric_takes_the_whole_budget() -> None:
    """A day more of it is beyond it."""
    fits, beyond = (
        estimate(Metric.model_validate(parse_text(text))).memory_bytes
        for text in noisy_metric(1_000)
    )
    assert fits <= TENANT_BYTES < beyond


def test_every_noisy_event_is_a_series_of_its_own() -> None:
    """As many users as events."""
    lines = [line for body in noisy_bodies(3_000) for line in body.splitlines()]
    assert len({json.loads(line)["data"]["user"] for line in lines}) == 3_000


def test_the_bars_are_those_of_the_medians() -> None:
    """Of three rounds the second by size; a pane that differs misses its bar."""

    def one(alone: float, beside: float) -> dict[str, object]:
        figures = {"fresh_ms": {"p99": beside}, "from_due_ms": {"p99": beside + 5}}
        usual = {"panes_compared": 420, "panes_differ": 0}
        return {"alone": {"fresh_ms": {"p99": alone}}, "beside": figures, **usual}

    found = bars([one(900, 990), one(1_000, 1_300), one(1_100, 9_000)])
    judged = [judge(bar["reach"], bar["got"]).reached for bar in found]
    assert [bar["got"] for bar in found[1:3]] == ["1300 ms", 1.3]
    assert judged == [Reached.NONE, Reached.YES, Reached.MISSED, Reached.NONE, Reached.YES]
    assert judge("≤ 0 panes", "1 panes (of 420 compared)").reached is Reached.MISSED


class Sending:
    """What a tenant sends: a body is accepted whenever somebody looks."""

    def __init__(self, bodies: int, accepted: int = 0) -> None:
        self.bodies, self._accepted = [b""] * bodies, accepted
        self.joined = False

    @property
    def accepted(self) -> int:
        """One more than before, until all are."""
        self._accepted = min(len(self.bodies), self._accepted + 1)
        return self._accepted

    def start(self) -> None:
        """Begin."""

    def join(self) -> None:
        """Return when all is sent."""
        self.joined = True


def noisy(load: Sending, monkeypatch: pytest.MonkeyPatch) -> tuple[Noisy, list[str]]:
    """Return a noisy tenant over a load, and what it does."""
    did: list[str] = []

    def wait_until(ready: Callable[[], bool], what: str, _timeout_s: float) -> None:
        while not ready():
            pass
        did.append(what)

    def refusal(*_: Any) -> str:
        did.append("refused")
        return "too much"

    monkeypatch.setattr(tenants, "refusal", refusal)
    monkeypatch.setattr(tenants, "put", lambda *_: did.append("put"))
    api = SimpleNamespace(call=lambda *_: SimpleNamespace(body={"serving": True}))
    stack = SimpleNamespace(wait_until=wait_until)
    return Noisy(cast("Any", stack), cast("Any", load), cast("Any", api), 1_000), did


def test_the_metric_is_defined_while_its_events_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a quarter of them is there, so that it has a past to count; then it must serve."""
    load = Sending(40)
    tenant, did = noisy(load, monkeypatch)
    tenant.start()
    tenant.join()
    assert load.joined
    assert did[:3] == ["a quarter of what is sent", "refused", "put"]
    assert did[3].startswith("the noisy tenant's metric")
    assert tenant.defined_after is not None
    assert 10 <= tenant.defined_after < 40


def test_a_metric_that_came_too_late_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all was sent already, nobody was beside a plan or a past that is counted."""
    tenant, _ = noisy(Sending(40, accepted=40), monkeypatch)
    tenant.start()
    with pytest.raises(RuntimeError, match="must be defined while its 40 bodies are sent"):
        tenant.join()


def test_what_fails_beside_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal in other words is raised where the tenant is waited for."""
    tenant, _ = noisy(Sending(40), monkeypatch)

    def wrong(*_: Any) -> str:
        msg = "was taken"
        raise RuntimeError(msg)

    monkeypatch.setattr(tenants, "refusal", wrong)
    tenant.start()
    with pytest.raises(RuntimeError, match="was taken"):
        tenant.join()
