"""What metrics keep besides counts: from events of a log to rows in Redis, and read again."""

from __future__ import annotations

import hashlib
import os
import random
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from account import Account
from row_events import check
from weir.event import identity_digest
from weir.frequent import Texts, texts_union, top_of
from weir.further import Last
from weir.rows import Row
from weir.sets import opened, overlap, set_size
from weir.sketches import distinct_in, hll_union, kll_quantile
from weir_analytics.panes.plan import Plan

from . import drawn_log
from .log_frames import NOW_MS, batch_of, counted, log_of, open_shards, run_batch
from .test_plan import Panes, ledger, metric, panes_in, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.redis]

Way = Callable[[str, drawn_log.Log], drawn_log.Counting]

BASE_MS = NOW_MS - NOW_MS % 60_000
# How many more the long form draws.
MORE = 20


def logs(usual: int) -> int:
    """Return how many logs are drawn: as many as `WEIR_DRAWN_LOGS` says, else as usual."""
    return int(os.environ.get("WEIR_DRAWN_LOGS") or usual)


LOGS = logs(3)
# Which log is counted in which way: columns are the slower way, and not the usual one.
DRAWN = (
    *(pytest.param(n, False, id=f"arrow-{n}") for n in range(LOGS)),
    *(
        pytest.param(n, False, id=f"arrow-{n}", marks=pytest.mark.disruption)
        for n in range(LOGS, LOGS + MORE)
    ),
    pytest.param(0, True, id="columns-0"),
)
# By columns one log takes as long as several by Arrow.
DRAWN_ORDERS = (
    *DRAWN[:-1],
    pytest.param(0, True, id="columns-0", marks=pytest.mark.disruption),
)
EVERYTHING = [
    *("count", "sum", "stddev", "last", "p50", "p99"),
    *("distinct(data.u)", "theta(data.t)", "top(data.p, 3)"),
]


def draw(rng: random.Random, at: int) -> dict[str, Any]:
    """Return the data of one event of series `a`, `b` or `c`."""
    return {
        "x": round(rng.lognormvariate(3, 1), 2),
        "k": "abc"[at % 3],
        "u": rng.choice(["", None, *map(str, range(40))]),
        "t": f"é{rng.randint(0, 30)}",
        "p": f"/page/{min(rng.randint(0, 9), rng.randint(0, 9))}" if at % 5 else None,
    }


def identity(event_id: str) -> bytes:
    """Return the digest that ingest gives an event of the tests."""
    return identity_digest("acme", "s", event_id)


class TestEverything:
    def test_one_metric_keeps_all(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Each measure of each pane and series is that of a plain recount, beside others' plans.

        A metric with other sizes, one that keeps another set of measures and one that keeps
        none are counted in the same pass, and none takes anything of another.
        """
        rng = random.Random(5)  # noqa: S311
        times = [BASE_MS + rng.randint(0, 119_999) for _ in range(300)]
        data = [draw(rng, at) for at in range(300)]
        log = [
            counted(str(i), at, **of) for i, (at, of) in enumerate(zip(times, data, strict=True))
        ]
        common = {"by": ["data.k"], "keep": {"10s": "1h", "1m": "1d"}}
        sizes = {"kll_k": 1000, "hll_lg_k": 14, "theta_lg_k": 9, "top_lg_k": 7}
        metrics = [
            metric(value="data.x", aggregates=EVERYTHING, **common),
            metric(name="o", aggregates=EVERYTHING, value="data.x", sketches=sizes, **common),
            metric(name="t", aggregates=["top(data.u)", "distinct(data.u)"], **common),
            metric(name="n", value="data.x", aggregates=["sum"], **common),
        ]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url)
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, log), plan_of(*metrics, columns=columns), batch)
        panes = panes_in(redis_url)

        for start_ms in (BASE_MS, BASE_MS + 60_000):
            for series in "abc":
                within = [
                    i
                    for i, at in enumerate(times)
                    if start_ms <= at < start_ms + 60_000 and data[i]["k"] == series
                ]
                events = [(times[i], identity(str(i)), data[i]) for i in within]
                key, text = start_ms // 1000, f"={series}"
                for vid in (1, 2):
                    check_all(panes[vid, 60, key][text], events)
                only = panes[3, 60, key][text]
                assert only.sum is None
                assert only.further is not None
                assert (only.further.spread, only.further.last, only.further.theta) == (None,) * 3
                check_top(only.further.top, [of["u"] for _at, _id, of in events], 10)
                plain = panes[4, 60, key][text]
                assert (plain.hll, plain.kll, plain.further) == (None, None, None)
        fine = [
            row
            for (vid, res, _), rows in panes.items()
            if (vid, res) == (2, 10)
            for row in rows.values()
        ]
        assert {row.further.theta.lg_k for row in fine} == {9}  # type: ignore[union-attr]

    def test_a_time_beyond_what_python_has(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """The calendar goes on before the year 1 and after 9999, where its `datetime` ends."""
        years = {
            253_402_300_799_999: "9999",
            253_402_300_800_000: "10000",
            999_999_999_999_999: "33658",
            -62_135_596_800_000: "1",
            -62_135_596_800_001: "0",
        }
        log = [counted(str(i), BASE_MS, ms=ms) for i, ms in enumerate(years)]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url)
        open_shards(redis_url, batch)
        plan = plan_of(metric(by=["year(data.ms) as year"]), columns=columns)
        run_batch(spark, log_of(spark, log), plan, batch)
        rows = panes_in(redis_url)[1, 60, BASE_MS // 1000]
        assert {text: row.n for text, row in rows.items()} == {f"={y}": 1 for y in years.values()}

    def test_of_one_instant_the_greater_identity_is_last(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """Whatever order two events of one millisecond come in, one of them is the last."""
        ids = sorted(map(str, range(9)), key=identity), sorted("abcdefghi", key=identity)[::-1]
        log = [
            counted(one, BASE_MS, x=float(at), k=str(turn))
            for turn, order in enumerate(ids)
            for at, one in enumerate(order)
        ]
        batch = batch_of(tmp_path, len(log), redis_url=redis_url)
        open_shards(redis_url, batch)
        m = metric(value="data.x", by=["data.k"], aggregates=["last"])
        run_batch(spark, log_of(spark, log), plan_of(m, columns=columns), batch)
        pane = panes_in(redis_url)[1, 10, BASE_MS // 1000]
        found = [pane[f"={turn}"].further for turn in range(2)]
        want = [Last(BASE_MS, identity(ids[0][-1]), 8.0), Last(BASE_MS, identity(ids[1][0]), 0.0)]
        assert [one and one.last for one in found] == want

    def test_what_has_no_text_is_quarantined_for_its_metric(
        self, spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
    ) -> None:
        """An object under any of a metric's sketches is `value_invalid`, and for that one alone."""
        log = [counted("1", u={"a": 1}, t="x"), counted("2", u="y", t=[1]), counted("3", u="z")]
        batch = batch_of(tmp_path, 3, redis_url=redis_url, copies="none")
        open_shards(redis_url, batch)
        both = metric(aggregates=["distinct(data.u)", "theta(data.t)"])
        first = metric(name="f", aggregates=["theta(data.u)"])
        run_batch(spark, log_of(spark, log), plan_of(both, first, columns=columns), batch)
        panes = panes_in(redis_url)
        start_s = NOW_MS // 1000 - NOW_MS // 1000 % 10

        assert panes[1, 10, start_s][""].n == 1
        assert panes[2, 10, start_s][""].n == 2


def check_all(row: Row, events: list[tuple[int, bytes, dict[str, Any]]]) -> None:
    """Compare a row with the events that it was made of."""
    values = [data["x"] for _at, _id, data in events]
    assert row.n == len(events)
    assert row.further is not None
    assert row.further.spread == pytest.approx(statistics.pvariance(values) * len(values))
    at_ms, found, data = max(events, key=lambda event: event[:2])
    assert row.further.last == Last(at_ms, found, data["x"])
    assert kll_quantile(row.kll or b"", 0.5).value == statistics.median_low(values)
    users = {data["u"] for _at, _id, data in events} - {None}
    assert distinct_in(hll_union([row.hll or b""])).value == len(users)
    texts = {data["t"] for _at, _id, data in events}
    assert row.further.theta is not None
    assert set_size(opened(row.further.theta)).value == len(texts)
    check_top(row.further.top, [data["p"] for _at, _id, data in events], 3)


def check_top(stored: Texts | None, texts: list[str | None], items: int) -> None:
    """Compare a list of frequent texts with a plain count; none is cut or left out."""
    tally = Counter(text for text in texts if text is not None)
    ranked = sorted(tally.items(), key=lambda of: (-of[1], of[0]))
    assert stored is not None
    top = top_of(texts_union([stored]), items)
    assert [(item.text, item.events, item.low, item.high) for item in top.items] == [
        (text, n, n, n) for text, n in ranked[:items]
    ]
    assert top.unlisted == (ranked[items][1] if len(ranked) > items else 0)


@pytest.mark.parametrize(("number", "columns"), DRAWN)
def test_a_drawn_log_gives_the_same_panes(
    spark: SparkSession, redis_url: str, tmp_path: Path, seed: int, number: int, columns: bool
) -> None:
    """Any split and replay of a log: equal panes, each sketch within its bound.

    A seeded log goes through plan and commit at once, and in drawn batches that all come again,
    some after one shard alone was set back; both are held against a recount that knows neither.
    """
    rng = random.Random(f"{seed}-{number}")  # noqa: S311  drawn by a seed
    log = drawn_log.draw(rng)
    way = way_of(spark, redis_url, tmp_path, columns=columns)
    account, expected = counted_alike(way, (log, log), rng)
    assert min(account.totals[one] for one in ("duplicate", "quarantined")) > 0
    assert any(start_s < drawn_log.BASE_MS // 1000 - 3_600 for _vid, _res_s, start_s in expected)


@pytest.mark.parametrize(("number", "columns"), DRAWN_ORDERS)
def test_any_order_gives_the_same_panes(
    spark: SparkSession, redis_url: str, tmp_path: Path, seed: int, number: int, columns: bool
) -> None:
    """The same events in two drawn orders, at once and in parts: held against one recount."""
    rng = random.Random(f"{seed}-order-{number}")  # noqa: S311  drawn by a seed
    drawn = drawn_log.draw(rng)
    one, other = (drawn_log.shuffled(rng, drawn) for _ in range(2))
    assert one != other
    way = way_of(spark, redis_url, tmp_path, columns=columns)
    account, _expected = counted_alike(way, (one, other), rng)
    assert account.totals["duplicate"] == 0


def way_of(spark: SparkSession, redis_url: str, folder: Path, *, columns: bool) -> Way:
    """Return how a log is counted, with a name of that counting."""
    metrics = drawn_log.METRIC, metric(name="n", events={"type": ["t", "u"]})
    plan = plan_of(*metrics, shards=drawn_log.SHARDS, columns=columns)
    return lambda name, log: drawn_log.Counting(spark, redis_url, folder / name, plan, log)


def counted_alike(
    way: Way, logs: tuple[drawn_log.Log, drawn_log.Log], rng: random.Random
) -> tuple[Account, Mapping[drawn_log.Place, Mapping[str, Any]]]:
    """Count one log at once and the other in drawn parts; both must be what a recount says of one.

    Returns:
        The recount: what became of each record, and the rows of every pane.
    """
    one, other = logs
    whole, parts = way("whole", one).at_once(), way("parts", other).in_parts(rng)

    account = drawn_log.account_of(one)
    assert ledger(whole) == ledger(parts) == account.totals
    expected = drawn_log.panes_of(account.counted, "acme", "t")
    for panes in (whole, parts):
        check_panes(panes, expected)
    drawn_log.assert_alike(whole, parts)
    return account, expected


def check_panes(panes: Panes, expected: Mapping[drawn_log.Place, Mapping[str, Any]]) -> None:
    """Compare all panes of the drawn metric with what the recount has for each row."""
    of_metric = {place: rows for place, rows in panes.items() if place[0] == 1}
    assert of_metric.keys() == expected.keys()
    for place, rows in of_metric.items():
        assert rows.keys() == expected[place].keys(), place
        for series, row in rows.items():
            check(row, expected[place][series])


class TestColumns:
    def test_what_nobody_asks_for_has_no_column(self, spark: SparkSession) -> None:  # noqa: ARG002  the JVM makes columns
        """A plan of plain metrics has no sketch, and one kind of measure no other's columns."""
        plain = metric(), metric(name="v", value="data.x", aggregates=["avg", "max"])
        assert plan_of(metric()).outputs == ()
        assert plan_of(*plain).outputs == ("sum", "min", "max")
        one = (*plain, metric(name="o", value="data.x", aggregates=["stddev"]))
        assert plan_of(*one).outputs == ("sum", "min", "max", "variance")
        assert plan_of(metric(aggregates=["top(subject)"])).outputs == ("top_10", "texts_10")
        for metrics in (plain, one, (drawn_log.METRIC,)):
            by_columns = plan_of(*metrics, columns=True)
            assert isinstance(by_columns, Plan)
            assert by_columns.ordered == (metrics[0] is drawn_log.METRIC)
            assert sorted(by_columns.outputs) == sorted(plan_of(*metrics).outputs)


class TestBytes:
    def test_hashes_are_the_same_here_and_there(
        self, spark: SparkSession, redis_url: str, tmp_path: Path
    ) -> None:
        """Sets that two metrics keep have in common what both have seen, long texts too."""
        long = hashlib.sha512(b"x").hexdigest() * 4
        log = [counted(str(i), u=f"u{i}", t=f"u{i + 50}") for i in range(100)]
        log.append(counted("long", u=long, t=long, p=long))
        batch = batch_of(tmp_path, len(log), redis_url=redis_url)
        open_shards(redis_url, batch)
        metrics = (
            metric(aggregates=["theta(data.u)"]),
            metric(name="b", aggregates=["theta(data.t)", "top(data.p)"]),
        )
        run_batch(spark, log_of(spark, log), plan_of(*metrics), batch)
        start_s = NOW_MS // 1000 - NOW_MS // 1000 % 10
        rows = [panes_in(redis_url)[vid, 10, start_s][""].further for vid in (1, 2)]
        one, other = (opened(row.theta) for row in rows if row and row.theta)
        assert set_size(overlap(one, other)).value == 51
        assert rows[1] is not None
        assert rows[1].top is not None
        (item,) = top_of(texts_union([rows[1].top]), 10).items
        assert (
            item.text
            == long[:64] + "…" + hashlib.md5(long.encode(), usedforsecurity=False).hexdigest()
        )
