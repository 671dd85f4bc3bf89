"""What the runner knows of a job that is under way, whatever it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from confluent_kafka import KafkaException
from redis.exceptions import RedisError

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.shard_wire import StoreError

Outcome = Mapping[str, Any]

# What may pass by itself: a part outside is away, or refuses for now.
PASSING = (KafkaException, RedisError, StoreError, TimeoutError, OSError)


class Progress(NamedTuple):
    """How far a job has come: `at` of `of` records, or whatever it counts."""

    at: int
    of: int


class RefusedError(Exception):
    """What was asked for cannot be done; the text says why and what to do."""


class NotNowError(Exception):
    """The next slice has to wait for something; the text says for what."""


class Task(Protocol):
    """A job under way.

    Attributes:
        stopping: Somebody has cancelled it: end as soon as everything is in order.
        goes_on: Whether it goes on where it was after a step that met a part that is away, and in
            a further life of the driver in the same epoch; else it is begun again.
    """

    stopping: bool
    goes_on: ClassVar[bool]

    @property
    def progress(self) -> Progress:
        """Return how far it has come."""
        ...

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Return what it must know again after a crash; asked once, and recorded.

        Raises:
            RefusedError: If it cannot be done.
        """
        ...

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Begin, or begin again after a crash, by what was recorded."""
        ...

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """Do a slice, until `is_over`; return with what the job ended, None if it goes on.

        Raises:
            RefusedError: If it cannot be done.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
