"""Versions that cannot be used: they keep their number and change nothing else."""

from __future__ import annotations

import re

import pytest
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.definitions.in_force import refusal
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    activation_record,
    delete_record,
    put_record,
    start_record,
)
from weir.problems import ProblemError

GOOD = "kind: metric\nname: m\nevents: {type: t}"
BAD = GOOD + "\nfrom_the_future: 1"


class Log:
    """One metric's records, folded as they are written."""

    def __init__(self) -> None:
        self.state = Definitions()

    def put(self, text: str) -> int:
        """Write a text as the next version, unchecked, and return its vid."""
        record = put_record(self.edit(), text)
        at = self.state.next_offset
        change = self.state.apply(at, *record)
        assert change is not None
        assert change.applied
        return at

    def delete(self) -> None:
        """Delete it."""
        self.state.apply(self.state.next_offset, *delete_record(self.edit()))

    def edit(self) -> Edit:
        """Return a change of what is the newest version now."""
        version = self.state.version("acme", "metric", "m")
        return Edit("acme", "metric", "m", version, by="other", at_ms=7)

    def in_force(self) -> str | None:
        """Return the text in force."""
        found = self.state.get("acme", "metric", "m")
        listed = self.state.current("acme", "metric")
        assert listed == ([] if found is None else [found])
        return None if found is None else found.text


@pytest.mark.parametrize(
    ("once", "mend"),
    [
        ('where: data.kind = "source"', "single quotes: 'source'"),
        ("value: data.x\naggregates: [p50, p50.0]", "p50 stands there twice"),
        ("by: [data.a, 'data.\"a\"']", "data.a stands there twice"),
        ("value: data.x\naggregates: [p99.9]\nsketches: {kll_k: 6400}", "write kll_k: 8427"),
    ],
)
def test_what_is_refused_since_is_read_from_the_log(once: str, mend: str) -> None:
    """A text that an older release took stays in force, and is refused where it is written."""
    log = Log()
    log.put(f"{GOOD}\n{once}")
    assert log.in_force() == f"{GOOD}\n{once}"
    with pytest.raises(ProblemError, match=re.escape(mend)):
        check("metric", "m", f"{GOOD}\n{once}")


def test_what_was_stored_twice_goes_on_as_it_was() -> None:
    """Two dimensions that are one keep their places in the series; an aggregate is kept once."""
    log = Log()
    members = "by: [data.a, 'data.\"a\"']\nvalue: data.x\naggregates: [p05, p5, avg]"
    found = log.state.by_vid(log.put(f"{GOOD}\n{members}"))
    assert found is not None
    assert found.metric is not None
    assert (found.metric.by, found.metric.aggregates) == (("data.a", "data.a"), ("p5", "avg"))


def test_the_version_before_goes_on() -> None:
    """A text that cannot be used takes a number; what was in force stays, until one can."""
    log = Log()
    log.put(GOOD)
    log.put(BAD)
    assert log.in_force() == GOOD
    assert log.state.version("acme", "metric", "m") == 2
    log.put(GOOD + "\nunit: ms")
    assert log.in_force() == GOOD + "\nunit: ms"
    assert [d.version for d in log.state.history("acme", "metric", "m")] == [3, 2, 1]


def test_nothing_before_it() -> None:
    """Where no version could be used there is none, also after a deletion."""
    log = Log()
    log.put(BAD)
    assert log.in_force() is None
    log.put(GOOD)
    log.delete()
    log.put(BAD)
    assert log.in_force() is None


def test_why() -> None:
    """Of a version that is passed over the reason is told, of others none."""
    log = Log()
    first = log.put(GOOD)
    second = log.put(BAD)
    log.delete()
    found = [log.state.by_vid(vid) for vid in (first, second, second + 1)]
    told = [refusal(one) for one in found if one is not None]
    assert [one is None for one in told] == [True, False, True]
    assert "from_the_future" in str(told[1].message)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [BAD, "kind: [metric]", "", "\x00"])
def test_a_metric_goes_on_being_counted(text: str) -> None:
    """The driver neither stops the version before nor begins the one that cannot be used."""
    log = Log()
    vid = log.put(GOOD)
    fence = log.state.next_offset
    log.state.apply(fence, *start_record(DriverStart("a", 1, "start"), at_ms=1))
    begun = Counting(vid, "acme", "m", 1, {0: 5})
    record = activation_record(begun, op="start", fence=fence, at_ms=1)
    log.state.apply(log.state.next_offset, *record)
    log.put(text)
    assert log.state.metrics_to_start() == []
    assert [one.definition.vid for one in log.state.metrics_active()] == [vid]


def test_a_text_that_comes_again_is_read_once() -> None:
    """As of metrics that are counted again each day: reading YAML takes milliseconds."""
    log = Log()
    vids = [log.put(GOOD), log.put(GOOD + "\nunit: s"), log.put(GOOD)]
    first, other, again = (log.state.by_vid(vid) for vid in vids)
    assert first is not None
    assert other is not None
    assert again is not None
    assert again.model is first.model
    assert other.model != first.model
