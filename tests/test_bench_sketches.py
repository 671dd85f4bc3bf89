"""Trials of sketches fail where a bound does not hold, and where they prove nothing."""

from __future__ import annotations

import pytest
import sketch_trials
import sketches
from sketch_trials import SHAPES, Sizes, Tally, Trial, of_trials
from weir.sketches import Bounded


def trial(shape: str, parts: int, values: int) -> Tally:
    """Return one small trial."""
    return of_trials(Trial(shape, parts, values, range(1), Sizes(200, 8, 8, 5), 1))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trial_asks_everything(shape: str) -> None:
    """Every kind of answer is compared, and each is within its bounds."""
    found = trial(shape, 7, 7_000)
    assert set(found.trials) == {"p0.1", "p50", "p95", "p99", "p99.9", *sketch_trials.OTHERS}
    assert found.held == found.trials


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
    wrong = sketches.failures({3: small}, {3: 150})
    assert "p50, uniform, 3 parts: 0 of 1 estimated" in wrong
    assert not [one for one in wrong if "distinct, constant" in one]
    large = {shape: trial(shape, 3, 30_000) for shape in SHAPES}
    assert sketches.failures({3: large}, {3: 30_000}) == []


def test_parts_are_told_apart_from_what_is_merged() -> None:
    """Parts of 50 values are exact at k 200; what is merged of them is not."""
    found = trial("lognormal", 10, 500)
    assert (found.estimated["p50"], found.parts_estimated["p50"]) == (1, 0)


@pytest.mark.parametrize(
    ("held", "trials", "expected"),
    [(400, 400, False), (396, 400, False), (389, 400, False), (380, 400, True), (38, 40, False)],
)
def test_a_share_is_refuted_beyond_chance(held: int, trials: int, expected: bool) -> None:
    """Of 400 trials eleven misses may still be those of 99 %, twenty are not."""
    assert sketches.refuted(held, trials) is expected


def test_too_few_within_the_bounds_fail() -> None:
    """The share over all shapes is what the bar asks for."""
    tally = Tally()
    for held in (True,) * 97 + (False,) * 3:
        tally.note("p50", held=held, size=1, estimated=True, part=True)
    found = sketches.failures({1: {"uniform": tally}}, {1: 1})
    assert found == ["p50 of 1 parts: 97 of 100 within the bounds"]
