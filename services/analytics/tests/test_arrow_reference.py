"""From the bytes of events to rows of panes, as a task counts them: what the reference says.

What is read of events, and what expressions make of it, have properties of their own
(`test_arrow_events.py`, `test_arrow_nodes.py`); here nothing lies between the bytes of a log and
`weir.expressions.use` but the task itself.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import datasketches as ds
import pytest
from weir.definitions.metric import Metric
from weir.expressions import NotMatched, Quarantined, Used, use
from weir.expressions.use import Outcome
from weir.problems import Reason
from weir.rows import Row
from weir.sketches import distinct_in, hll_union
from weir_analytics.panes import arrow_count
from weir_analytics.panes.arrow_count import CountTask
from weir_analytics.panes.arrow_plan import ArrowPlan, make_plan
from weir_analytics.panes.compile import EMPTY_MEMBER
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.inbox import Inbox
from weir_analytics.panes.measures import Measures
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version, versions_from_json, versions_to_json

from .compile_cases import draw_metric
from .log_frames import HORIZONS, NOW_MS, batch_of
from .test_arrow_count import taken
from .test_arrow_events import drawn

pytestmark = pytest.mark.usefixtures("each_decoder")

JOBS, METRICS, EVENTS = 6, 12, 150
# The least share of each outcome: below it the cases would prove little. Drawn are some 15 %
# that are used and 9 % that cannot be.
LEAST = 0.03

Panes = dict[tuple[int, int, int], dict[str, Row]]
"""(Version, length in s, start in s) -> series -> row."""


def placed(values: Sequence[bytes]) -> list[bytes]:
    """Return events of which each has an identity and a second of its own."""
    return [
        b'{"weirid":"%032x","weirms":"%+016d",%b' % (n, NOW_MS - n * 1_000, value.split(b",", 2)[2])
        for n, value in enumerate(values)
    ]


def start_s(n: int, res_s: int) -> int:
    """Return the start of the pane of an event of `placed`."""
    return (NOW_MS // 1000 - n) // res_s * res_s


def plan_of(metrics: Sequence[Metric]) -> ArrowPlan:
    """Return the plan of some metrics, with panes of a second, one of each event, and a minute."""
    keeps = ((1, 3_600), (60, 86_400))
    counted = [
        Counted(Version(vid, "default", one.name, keeps), one) for vid, one in enumerate(metrics, 1)
    ]
    plan = make_plan(counted, (HORIZONS,))
    assert isinstance(plan, ArrowPlan)
    return plan


def counted(metrics: Sequence[Metric], values: list[bytes], folder: Path) -> Inbox:
    """Return what the writer receives of a task that counts some events."""
    # Which decoder is made is no part of what it is remembered by.
    arrow_count.reading_of.cache_clear()
    plan, batch = plan_of(metrics), batch_of(folder, len(values), copies="none", dry=True)
    task = CountTask(plan.told, plan.outputs, batch)
    taken(task, DisposeTask(batch), values, [])
    inbox = Inbox(versions_from_json(versions_to_json(plan.versions)))
    for one in task.rows():
        inbox.take(one)
    return inbox


def panes_of(inbox: Inbox) -> Panes:
    """Return the rows of metrics by pane."""
    found: Panes = defaultdict(dict)
    for part in inbox.parts():
        if part.vid > 0:
            found[part.vid, part.res_s, part.start_s][part.series] = part.row
    return found


def outcomes(vid: int, inbox: Inbox, panes: Panes) -> list[Outcome]:
    """Return what a task made of each event for a metric, in the words of the reference.

    The distinct text is told as the bytes of the sketch that has only seen it.
    """
    reasons = {one.offset: one.code for one in inbox.copies.chosen() if one.vid == vid}
    found: list[Outcome] = []
    for n in range(EVENTS):
        rows = panes.get((vid, 1, start_s(n, 1)), {})
        if not rows:
            found.append(Quarantined(Reason(reasons[n])) if n in reasons else NotMatched())
            continue
        assert n not in reasons
        ((series, row),) = rows.items()
        assert (row.n, row.min, row.max) == (1, row.sum, row.sum)
        found.append(Used(series, row.sum, None if row.hll is None else row.hll.hex()))
    return found


def wanted(metric: Metric, values: Sequence[bytes]) -> list[Outcome]:
    """Return the same by the reference, the distinct text as a sketch of it."""
    lg_k = Measures.of(metric).hll_lg_k
    found: list[Outcome] = []
    for value in values:
        one = use(metric, json.loads(value))
        if isinstance(one, Used) and one.distinct is not None:
            sketch = ds.hll_sketch(lg_k, ds.HLL_8)
            sketch.update(one.distinct or EMPTY_MEMBER)
            one = Used(one.series, one.value, sketch.serialize_compact().hex())
        found.append(one)
    return found


def check_minutes(vid: int, panes: Panes, used: Mapping[int, Used]) -> None:
    """Compare the panes of a minute with all that was used in it, by series.

    Args:
        vid: The version.
        panes: All panes.
        used: By place in the log, what `wanted` says of each event that is used.
    """
    groups: dict[tuple[int, str], list[Used]] = defaultdict(list)
    for n, one in used.items():
        groups[start_s(n, 60), one.series].append(one)
    found = {
        (at_s, series): row
        for (of, res_s, at_s), rows in panes.items()
        if (of, res_s) == (vid, 60)
        for series, row in rows.items()
    }
    assert found.keys() == groups.keys()
    for place, row in found.items():
        values = [one.value for one in groups[place] if one.value is not None]
        texts = {one.distinct for one in groups[place]} - {None}
        assert row.n == len(groups[place])
        assert (row.min, row.max) == (min(values), max(values))
        largest = max(map(abs, values))
        assert row.sum == pytest.approx(math.fsum(values), abs=1e-12 * largest * row.n)
        assert (0 if row.hll is None else distinct_in(hll_union([row.hll])).value) == len(texts)


class TestAgainstTheReference:
    def test_a_task_makes_of_bytes_what_the_reference_does(
        self, seed: int, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        """Drawn metrics with drawn expressions, on drawn events: each event, and their minutes.

        Which are used, in which series, with which value and text, and why others are not. The
        cases must be worth it: each of the three outcomes is among them often.
        """
        tally = dict.fromkeys((Used, Quarantined, NotMatched), 0)
        for job in range(JOBS):
            random = Random(f"{seed}/{request.node.callspec.id}/{job}")  # noqa: S311 - cases
            metrics = [draw_metric(random, f"m{at}") for at in range(METRICS)]
            values = placed(drawn(random, EVENTS))
            inbox = counted(metrics, values, tmp_path / str(job))
            panes = panes_of(inbox)
            for vid, metric in enumerate(metrics, 1):
                expected = wanted(metric, values)
                found = outcomes(vid, inbox, panes)
                for value, one, other in zip(values, found, expected, strict=True):
                    assert one == other, (seed, job, value, metric.canonical())
                used = {n: one for n, one in enumerate(expected) if isinstance(one, Used)}
                check_minutes(vid, panes, used)
                for one in expected:
                    tally[type(one)] += 1
        assert min(tally.values()) > LEAST * JOBS * METRICS * EVENTS, tally
