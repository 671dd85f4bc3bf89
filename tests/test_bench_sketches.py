"""Trials of sketches fail where a bound does not hold, and where they prove nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
import sketch_trials
import sketches
from shares import refuted
from sketch_trials import KIND_OF, KINDS, SHAPES, Cut, Sizes, Tally, Trial, Way, of_trials
from weir.sketches import Bounded


def cuts(parts: int, values: int) -> dict[str, Cut]:
    """Return equal parts of each kind of sketch."""
    return dict.fromkeys(KINDS, Cut(parts, values // parts))


def trial(shape: str, parts: int, values: int, *, chained: bool = False) -> Tally:
    """Return one small trial."""
    way, sizes = Way(parts, chained), Sizes(200, 8, 8, 5)
    return of_trials(Trial(shape, way, cuts(parts, values), range(1), sizes))


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_trial_asks_everything(shape: str, chained: bool) -> None:
    """Every kind of answer is compared, and each is within its bounds."""
    found = trial(shape, 7, 7_000, chained=chained)
    assert set(found.trials) == {"p0.1", "p50", "p95", "p99", "p99.9", *sketch_trials.OTHERS}
    assert found.held == found.trials


def test_one_after_another_each_is_read_as_it_was_written() -> None:
    """What is merged so far comes back with each part, as a pane does; else all come at once."""
    asked: list[list[bytes | None]] = []

    def merged(parts: Iterable[bytes | None]) -> bytes:
        asked.append(list(parts))
        return b"".join(one or b"" for one in asked[-1])

    assert Way(3, chained=True).merge(merged, [b"a", b"b", b"c"]) == b"abc"
    assert asked == [[None, b"a"], [b"a", b"b"], [b"ab", b"c"]]
    asked.clear()
    assert Way(3).merge(merged, [b"a", b"b", b"c"]) == b"abc"
    assert asked == [[b"a", b"b", b"c"]]


@pytest.mark.parametrize("chained", [False, True])
def test_what_a_merge_takes_is_told(monkeypatch: pytest.MonkeyPatch, chained: bool) -> None:
    """Of each part its share of the time, of every kind; of several trials the middle one."""
    clock = iter(float(n) for n in range(1_000))
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    found = trial("uniform", 10, 3_000, chained=chained)
    assert {one["merge_us_a_part"] for one in found.to_dict().values()} == {100_000.0}
    other = trial("uniform", 10, 3_000, chained=chained)
    other.merge_s["p50"] = [0.3]
    found.add(other)
    found.add(other)
    assert found.to_dict()["p50"]["merge_us_a_part"] == 300_000.0


def test_a_figure_says_how_it_was_merged() -> None:
    """In the result, and in the bars of the page."""
    told = dict.fromkeys(SHAPES, trial("uniform", 3, 3_000))
    ways = {Way(1): told, Way(10_000): told, Way(10_000, chained=True): told}
    (got,) = (bar["got"] for bar in sketches.bars(ways) if bar["what"].endswith("bound, p50"))
    assert got == (
        "100.00 % (1 part, 5 trials), 100.00 % (10,000 parts, into one union, 5 trials), "
        "100.00 % (10,000 parts, one after another, 5 trials)"
    )


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds beside the truth are counted as not held, of each kind by its own truth."""
    beside = Bounded(-1.0, -2.0, -1.0)
    monkeypatch.setattr(sketch_trials, "kll_quantile", lambda *_: beside)
    monkeypatch.setattr(sketch_trials, "hll_estimate", lambda *_: beside)
    monkeypatch.setattr(sketch_trials, "set_size", lambda *_: beside)
    found = trial("uniform", 3, 3_000)
    assert {name for name, n in found.held.items() if n} == {"top"}


def test_a_sketch_that_holds_everything_proves_nothing() -> None:
    """It is within its bounds and fails all the same, unless the data cannot give more."""
    small = {shape: trial(shape, 3, 150) for shape in SHAPES}
    wrong = sketches.failures({Way(3): small}, {3: cuts(3, 150)})
    assert "p50, uniform, 3 parts, into one union: 0 of 1 estimated" in wrong
    assert not [one for one in wrong if "distinct, constant" in one]
    large = {shape: trial(shape, 3, 30_000) for shape in SHAPES}
    assert sketches.failures({Way(3): large}, {3: cuts(3, 30_000)}) == []


def test_parts_are_told_apart_from_what_is_merged() -> None:
    """Parts of 50 values are exact at k 200; what is merged of them is not."""
    found = trial("lognormal", 10, 500)
    assert (found.estimated["p50"], found.parts_estimated["p50"]) == (1, 0)
    wrong = sketches.failures({Way(10): {"lognormal": found}}, {10: cuts(10, 500)})
    assert "p50, lognormal, 10 parts, into one union: of 0 of 1 a part estimated" in wrong


def test_large_parts_come_first() -> None:
    """Two sizes, of the first values, and none is left out or taken twice."""
    cut = Cut(2, 3, 4, 1)
    parts = [part.tolist() for part in cut.parts(np.arange(20.0))]
    assert parts == [[0, 1, 2], [3, 4, 5], [6], [7], [8], [9]]
    assert cut.values == 10
    assert [len(part) for part in sketches.larger(cut, 5).parts(np.arange(50.0))] == [15] * 2 + [
        5
    ] * 4


def test_a_rank_is_the_nearest() -> None:
    """As of all values in order."""
    values = np.random.default_rng(1).permutation(np.arange(1.0, 1_001.0))
    assert sketch_trials.nearest_ranks(values, (0.001, 0.5, 0.99)) == [1.0, 500.0, 990.0]


def test_a_thousand_trials_of_each_sketch() -> None:
    """At each number of parts and way to merge them, of every kind of answer."""
    options = sketches.asked([])
    for (parts, _), trials in options.trials.items():
        assert trials * len(SHAPES) >= 1_000
        assert options.cuts[parts].keys() == KINDS.keys()
        assert {cut.large + cut.small for cut in options.cuts[parts].values()} == {parts}
    assert set(KIND_OF) == {"p0.1", "p50", "p95", "p99", "p99.9", *sketch_trials.OTHERS}


@pytest.mark.parametrize("parts", sketches.CUTS)
def test_the_usual_parts_prove_something(parts: int) -> None:
    """One trial of the usual sizes: what is merged estimates, and so does its largest part."""
    usual = sketches.CUTS[parts]
    small = {k: replace(cut, small=min(cut.small, 100)) for k, cut in usual.items()}
    small = {k: replace(cut, large=min(cut.large, 20)) for k, cut in small.items()}
    found = of_trials(Trial("lognormal", Way(parts), small, range(1), Sizes()))
    assert sketches.failures({Way(parts): {"lognormal": found}}, {parts: small}) == []


@pytest.mark.parametrize(
    ("held", "trials", "expected"),
    [(400, 400, False), (396, 400, False), (389, 400, False), (380, 400, True), (38, 40, False)],
)
def test_a_share_is_refuted_beyond_chance(held: int, trials: int, expected: bool) -> None:
    """Of 400 trials eleven misses may still be those of 99 %, twenty are not."""
    assert refuted(held, trials) is expected


def test_too_few_within_the_bounds_fail() -> None:
    """The share over all shapes is what the bar asks for."""
    tally = Tally()
    for held in (True,) * 97 + (False,) * 3:
        tally.note("p50", held=held, size=1, merge_s=0.0, estimated=True, part=True)
    found = sketches.failures({Way(1): {"uniform": tally}}, {1: cuts(1, 1)})
    assert found == ["p50 of 1 part: 97 of 100 within the bounds"]
