"""The benchmark of resolutions ends where a row is not what was drawn, on a real Redis."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis
import resolutions
from resolutions import RESOLUTIONS_S
from weir.rows import Row, merge_all
from weir_local.redis import RedisServer

PANES = RESOLUTIONS_S[-1] // RESOLUTIONS_S[0]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """Return a Redis of this test's own: the benchmark empties it."""
    server = RedisServer(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.mark.redis
@pytest.mark.parametrize("way", resolutions.WAYS)
def test_both_ways_are_compared_with_what_was_drawn(server: RedisServer, way: str) -> None:
    """With sketches, too."""
    client = redis.Redis.from_url(server.url)
    case = resolutions.case_of(3, PANES, sketches=True)
    found = resolutions.round_of(client, server, case, way)
    assert found["bytes"] > 0
    assert set(found) >= {f"cpu_ms_to_read_{res_s}_s" for res_s in RESOLUTIONS_S}


@pytest.mark.redis
def test_a_wrong_row_ends_it(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event too many, a series too few, one too many: each is named."""
    client = redis.Redis.from_url(server.url)
    case = resolutions.case_of(3, PANES, sketches=False)
    resolutions.round_of(client, server, case, "stored")
    for res_s in RESOLUTIONS_S:
        pane = resolutions.read(client, res_s, res_s)
        resolutions.compare(client, case, res_s, pane)
        first = min(pane)
        wrong = pane | {first: replace(pane[first], n=pane[first].n + 1)}
        with pytest.raises(SystemExit, match=f"the pane of {res_s} s must be of"):
            resolutions.compare(client, case, res_s, wrong)
        less = {number: row for number, row in pane.items() if number != first}
        with pytest.raises(SystemExit, match="got None"):
            resolutions.compare(client, case, res_s, less)
        with pytest.raises(SystemExit, match="must have 2 series, has 1 more"):
            resolutions.compare(client, replace(case, series=2), res_s, pane)
    monkeypatch.setattr(resolutions, "merge_all", lambda _rows: Row(0, 0.0, 0.0, 0.0))
    with pytest.raises(SystemExit, match="the pane of 60 s must be"):
        resolutions.round_of(client, server, case, "composed")


def without_hll(row: Row) -> Row:
    """Return a row that lacks one sketch."""
    return replace(row, hll=None)


def without_kll(row: Row) -> Row:
    """Return a row that lacks the other."""
    return replace(row, kll=None)


@pytest.mark.redis
@pytest.mark.parametrize("dropped", [without_hll, without_kll])
def test_a_sketch_that_is_dropped_ends_it(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, dropped: Callable[[Row], Row]
) -> None:
    """A read that leaves it out would be quick, and its numbers right."""
    monkeypatch.setattr(resolutions, "merge_all", lambda rows: dropped(merge_all(rows)))
    case = resolutions.case_of(3, PANES, sketches=True)
    with pytest.raises(SystemExit, match="sketches of series 0 of the pane of 60 s"):
        resolutions.round_of(redis.Redis.from_url(server.url), server, case, "composed")


def test_rounds_are_told_as_medians() -> None:
    """With the least and the most of each figure."""
    runs = [{"bytes": 1.0}, {"bytes": 5.0}, {"bytes": 2.0}]
    assert resolutions.summed(runs) == {"bytes": {"median": 2.0, "min": 1.0, "max": 5.0}}


@pytest.mark.redis
def test_every_kind_and_way_is_measured() -> None:
    """Of a small case: plain rows and rows with sketches, both ways, by the same names."""
    options = argparse.Namespace(series=2, panes=PANES, rounds=1)
    figures = dict(resolutions.measured(options))
    assert set(figures) == {"plain", "with sketches"}
    for ways in figures.values():
        assert set(ways) == set(resolutions.WAYS)
        assert len({frozenset(of) for of in ways.values()}) == 1
