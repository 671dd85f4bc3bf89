"""What to do to a topic so that it becomes what is wanted; decided without a broker.

Nothing is ever deleted and nothing shrinks by itself: a release that is rolled back,
or a second installation with smaller sizes, must not cost an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weir.topics import FOR_EVER, Topic

MIN_ISR = "min.insync.replicas"
RETENTIONS = frozenset({"retention.ms", "retention.bytes"})
GROW = "--allow-grow"
SHORTEN = "--allow-shorten"


@dataclass(frozen=True)
class Wanted:
    """A topic as it is wanted.

    Attributes:
        topic: Partitions and settings.
        replication: How many brokers should hold each partition.
        min_isr: How many of them must have a record before it is acknowledged.
    """

    topic: Topic
    replication: int = 1
    min_isr: int = 1


@dataclass(frozen=True)
class Found:
    """A topic as the broker has it.

    Attributes:
        partitions: How many.
        replication: Replicas of the partition that has the fewest.
        config: All its settings in force, as text.
    """

    partitions: int
    replication: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class Allowed:
    """What is done only if somebody asked for it.

    Attributes:
        grow: Add partitions. Keys move to other partitions then, so for one dedup
            horizon an event that is sent again may count twice.
        shorten: Shorten a retention. What is older is deleted soon after.
    """

    grow: bool = False
    shorten: bool = False


@dataclass(frozen=True)
class Plan:
    """What to do to one topic; nothing if it is as wanted.

    Attributes:
        wanted: What it is about.
        create: It is not there yet.
        partitions: How many it gets more than it has, as a total; None to leave them.
        config: Settings that change.
        kept: What stays larger than was asked, in words; no fault.
        refused: What stays less than was asked, in words.
    """

    wanted: Wanted
    create: bool = False
    partitions: int | None = None
    config: Mapping[str, str] | None = None
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.create or self.partitions or self.config)


def plan(wanted: Wanted, found: Found | None, allowed: Allowed) -> Plan:
    """Return what to do to a topic.

    Args:
        wanted: How it should be.
        found: How it is; None if it is not there.
        allowed: What may be done to one that is there.
    """
    if found is None:
        return Plan(wanted, create=True, config=new_config(wanted))
    kept: list[str] = []
    refused: list[str] = []
    partitions = _partitions(wanted.topic.partitions, found, allowed, kept, refused)
    if found.replication < wanted.replication:
        refused.append(
            f"replication {found.replication}, asked for {wanted.replication}; "
            "move it with Kafka's own kafka-reassign-partitions"
        )
    config = {
        name: value
        for name, value in wanted.topic.config.items()
        if _changes(name, value, found, allowed, kept)
    }
    if (raised := _raised_min_isr(wanted, found)) is not None:
        config[MIN_ISR] = raised
    return Plan(wanted, False, partitions, config, tuple(kept), tuple(refused))


def new_config(wanted: Wanted) -> dict[str, str]:
    """Return all settings that a topic gets when it is created."""
    return {**wanted.topic.config, MIN_ISR: str(wanted.min_isr)}


def _partitions(
    asked: int, found: Found, allowed: Allowed, kept: list[str], refused: list[str]
) -> int | None:
    if asked > found.partitions:
        if allowed.grow:
            return asked
        refused.append(
            f"partitions {found.partitions}, asked for {asked}; {GROW} adds them, and opens a gap "
            "of one dedup horizon in which an event sent twice may count twice"
        )
    elif asked < found.partitions:
        kept.append(f"partitions {found.partitions}, asked for {asked}; they never become fewer")
    return None


def _changes(name: str, value: str, found: Found, allowed: Allowed, kept: list[str]) -> bool:
    """Tell whether a setting is to be set; note one that is left as it is."""
    current = found.config.get(name)
    if current == value:
        return False
    if name not in RETENTIONS or current is None or _is_longer(value, current) or allowed.shorten:
        return True
    kept.append(
        f"{name} {current}, asked for {value}; {SHORTEN} shortens it, and what is older is deleted"
    )
    return False


def _is_longer(retention: str, other: str) -> bool:
    """Tell whether a retention keeps more than another."""
    if int(other) == FOR_EVER:
        return False
    return int(retention) == FOR_EVER or int(retention) > int(other)


def _raised_min_isr(wanted: Wanted, found: Found) -> str | None:
    """Return a higher number of replicas that must acknowledge; None to leave it.

    Never more than there are: nothing could be written then.
    """
    reachable = min(wanted.min_isr, found.replication)
    return str(reachable) if reachable > int(found.config.get(MIN_ISR, "1")) else None
