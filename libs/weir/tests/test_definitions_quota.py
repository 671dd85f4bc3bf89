"""What metrics cost: rows as long as their sketches, and all metrics of a tenant together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasketches as ds
import numpy as np
import pytest
from weir import rows
from weir.definitions.budget import TENANT_BYTES, estimate, row_bytes
from weir.definitions.fold import Definitions
from weir.definitions.metric import Metric
from weir.definitions.quota import check_quota, counted_costs, current_costs
from weir.definitions.records import Counting, DriverStart, activation_record, start_record
from weir.definitions.text import parse_texts
from weir.frequent import Texts
from weir.further import Further
from weir.problems import ProblemError, Reason
from weir.rows import Row
from weir.sets import Theta

SKETCHES = ("p50", "distinct(data.u)", "theta(data.u)")
PANES = {"10s": "1h"}


def metric(*aggregates: str, **members: Any) -> Metric:
    """Return a metric with a value."""
    given = {"name": "m", "events": {"type": "t"}, "value": "data.x", "keep": PANES, **members}
    return Metric.model_validate({**given, "aggregates": ["count", *aggregates]})


def stored_bytes(made: Metric, events: int) -> int:
    """Return how long a row is stored, of events that all differ."""
    sizes = made.sketches
    row = Row(events, 1.5, 0.25, 7.75)
    texts = [f"019a1e2c-7d4f-7b3a-9c5e-{n:012d}" for n in range(events)]
    if made.needs_kll:
        kll = ds.kll_doubles_sketch(made.kll_k)
        kll.update(np.random.default_rng(1).random(events))
        row.kll = bytes(kll.serialize())
    if made.needs_hll:
        hll = ds.hll_sketch(sizes.hll_lg_k, ds.HLL_8)
        for n in range(events):
            hll.update(n)
        row.hll = bytes(hll.serialize_compact())
    further = Further()
    if made.theta_path is not None:
        theta = ds.update_theta_sketch(sizes.theta_lg_k)
        for n in range(events):
            theta.update(n)
        further.theta = Theta(sizes.theta_lg_k, bytes(theta.compact().serialize()))
    if made.top_path is not None:
        top = ds.frequent_strings_sketch(sizes.top_lg_k)
        for text in texts:
            top.update(text)
        further.top = Texts(events, bytes(top.serialize()))
    row.further = further if further != Further() else None
    return len(rows.encode(row)) + len("id")


@pytest.mark.parametrize("events", [1, 20, 300, 1_400, 60_000])
@pytest.mark.parametrize(
    ("aggregate", "sizes"),
    [
        ("p50", {}),
        ("p50", {"kll_k": 16_000}),
        ("p50", {"kll_k": 200}),
        ("p99.9", {}),
        ("distinct(data.u)", {"hll_lg_k": 8}),
        ("distinct(data.u)", {"hll_lg_k": 15}),
        ("theta(data.u)", {"theta_lg_k": 8}),
        ("theta(data.u)", {"theta_lg_k": 16}),
        ("top(data.u)", {"top_lg_k": 6}),
        ("top(data.u)", {"top_lg_k": 14}),
    ],
)
def test_a_row_is_as_long_as_told(aggregate: str, sizes: dict[str, int], events: int) -> None:
    """What is stored is never longer, and where a sketch is full not much shorter."""
    made = metric(aggregate, sketches=sizes)

    told, real = row_bytes(made, events), stored_bytes(made, events)

    assert real <= told
    # `top` forgets half of its counters at once.
    assert told <= 4 * real + 300 or aggregate.startswith("top")


class TestEstimate:
    def test_sizes_of_sketches_count(self) -> None:
        """Larger sketches make rows of busy panes longer; so does a finer percentile."""
        sizes = {"kll_k": 16_000, "hll_lg_k": 15, "theta_lg_k": 16}
        small, large = metric(*SKETCHES), metric(*SKETCHES, sketches=sizes)
        assert estimate(large).memory_bytes > 2 * estimate(small).memory_bytes
        assert estimate(metric("p99.9")).memory_bytes > 10 * estimate(metric("p50")).memory_bytes

    def test_the_finest_percentile_fits_with_all_else_as_usual(self) -> None:
        """A thousand series of p99.9, kept as long as is usual, are within a tenant's budget."""
        given = {"name": "m", "events": {"type": "t"}, "value": "data.x", "by": ["data.k"]}
        made = Metric.model_validate({**given, "aggregates": ["p99.9"]})
        assert TENANT_BYTES / 2 < estimate(made).memory_bytes < TENANT_BYTES

    def test_many_series_share_the_events(self) -> None:
        """A thousand series cannot all be as busy as one alone."""
        one, many = (
            estimate(metric("p99", by=["data.k"], max_series=series)).memory_bytes
            for series in (1, 1_000)
        )
        assert one < many < 100 * one


class TestQuota:
    COST = estimate(metric("p50")).memory_bytes

    def test_edge(self) -> None:
        """A metric that takes exactly what is left is taken, one byte less refuses it."""
        others = {"other": 100, "m": self.COST - 1}
        assert check_quota(metric("p50"), others, self.COST + 100).memory_bytes == self.COST
        with pytest.raises(ProblemError) as caught:
            check_quota(metric("p50"), others, self.COST + 99)
        assert caught.value.reason is Reason.BUDGET_EXCEEDED
        assert caught.value.message == (
            f"/keep must be at most {self.COST - 1} bytes of panes, what is left of "
            f'{self.COST + 99}, got "{self.COST}"; lower max_series (1), keep less, or ask for '
            "fewer or smaller sketches; or do so in other (100 bytes)"
        )

    def test_who_has_too_much_may_have_less(self) -> None:
        """An edit that takes no more than the version before is taken, whatever else there is."""
        others = {"other": 10**12, "m": self.COST}
        assert check_quota(metric("p50"), others, 10).memory_bytes == self.COST
        with pytest.raises(ProblemError, match="must be at most 0 bytes"):
            check_quota(metric("p50"), others | {"m": self.COST - 1}, 10)


def change(name: str, text: str, tenant: str = "a", version: int = 1) -> dict[str, Any]:
    """Return the record of a metric's version."""
    return {
        "v": 1,
        "tenant": tenant,
        "kind": "metric",
        "name": name,
        "version": version,
        "based_on": version - 1 or None,
        "op": "put",
        "text": text,
        "by": "b",
        "at_ms": 0,
    }


def test_what_a_tenant_has() -> None:
    """In force is what is newest; counted is what a driver has begun, of another tenant nothing."""
    short, long = (f"events: {{type: t}}\nkeep: {{10s: {keep}}}" for keep in ("1h", "2h"))
    fold = Definitions()
    for offset, (tenant, name, version, text) in enumerate(
        [("a", "x", 1, long), ("a", "y", 1, short), ("b", "z", 1, short), ("a", "x", 2, short)]
    ):
        key = f"{tenant}/metric/{name}"
        made = fold.apply(offset, key, change(name, text, tenant, version))
        assert made is not None
        assert made.applied
    start = start_record(DriverStart("panes", 1, "start"), at_ms=0)
    fold.apply(4, start.key, start.value)
    said = Counting(vid=0, tenant="a", name="x", version=1, offsets={})
    begun = activation_record(said, op="start", fence=4, at_ms=0)
    fold.apply(5, begun.key, begun.value)

    assert current_costs(fold, "a") == {"x": 360 * 42, "y": 360 * 42}
    assert counted_costs(fold, "a") == {"x": 720 * 42}
    assert counted_costs(fold, "b") == {}


def test_the_demo_fits() -> None:
    """All metrics of the demo together take a small part of what a tenant may have."""
    others: dict[str, int] = {}
    for path in sorted((Path(__file__).parents[3] / "infra/local/definitions").glob("*.yaml")):
        for members in parse_texts(path.read_text(encoding="utf-8")):
            if members["kind"] == "metric":
                made = Metric.model_validate(members)
                others[made.name] = check_quota(made, others, TENANT_BYTES // 50).memory_bytes
    assert len(others) > 5
