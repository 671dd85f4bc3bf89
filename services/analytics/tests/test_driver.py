"""The driver around its stream, without Spark: what comes before it, and how it ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from weir.commit_found import Level
from weir_analytics.panes.driver import Driver, _first_line, _slices
from weir_analytics.panes.turns import GivenUpError

from .conftest import settings_for


class Query:
    """A stream that asks for one more batch while it is stopped, and waits for that."""

    def __init__(self, driver: Driver) -> None:
        self.asked: list[str] = []
        self.thread = threading.Thread(target=self.ask, args=(driver,), daemon=True)

    def ask(self, driver: Driver) -> None:
        """Ask for a batch."""
        try:
            driver._on_batch(cast("Any", None), cast("Any", None), 7)
        except GivenUpError:
            self.asked.append("refused")

    def stop(self) -> None:
        """End the thread, as Spark does, but not without end."""
        self.thread.start()
        self.thread.join(10)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """Return a driver that has only its own state."""
    nothing: Any = None
    return Driver(settings_for(tmp_path), nothing, nothing, nothing, nothing, nothing)


class TestEnd:
    @pytest.mark.parametrize("told", [True, False])
    def test_a_batch_that_is_asked_for_meanwhile_does_not_hold_it(
        self, driver: Driver, told: bool
    ) -> None:
        """Stopping waits for the stream's thread; that thread must not wait for it in turn."""
        if told:
            driver.stop.set()
        query = Query(driver)
        driver._end(cast("Any", query))

        assert not query.thread.is_alive()
        assert query.asked == ["refused"]


SAID_BY_SPARK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/weir_analytics/panes/writer.py", line 128, in write
    raise ValueError("SomeError: of the code, not of the run")
redis.exceptions.OutOfMemoryError: command not allowed when used memory > 'maxmemory'.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/weir_analytics/panes/shard_wire.py", line 128, in _replies
    raise StoreError(msg) from refused
weir_analytics.panes.shard_wire.StoreError: redis refused to write: command not allowed
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException
Caused by: java.lang.Error: no matter
"""


class TestWhatWentWrong:
    def test_of_a_task_it_is_what_the_worker_raised(self) -> None:
        """Whoever reads it asks what is wrong with Redis, not that Spark has workers."""
        wanted = "StoreError: redis refused to write: command not allowed"
        assert _first_line(RuntimeError(SAID_BY_SPARK)) == wanted

    def test_of_all_else_it_is_the_first_line(self) -> None:
        """With the kind of error before it."""
        assert _first_line(OSError("no route\nmore")) == "OSError: no route"


class TestLevel:
    def test_pieces_follow_each_other_without_a_gap(self) -> None:
        """All of the range and nothing else; a partition that is done leaves others its part."""
        level = Level(0, {0: 5, 1: 2}, {0: 7, 1: 40, 2: 3}, {})
        pieces = list(_slices(level, 12))

        assert pieces == [
            ({0: 5, 1: 2, 2: 0}, {0: 7, 1: 6, 2: 3}),
            ({0: 7, 1: 6, 2: 3}, {0: 7, 1: 18, 2: 3}),
            ({0: 7, 1: 18, 2: 3}, {0: 7, 1: 30, 2: 3}),
            ({0: 7, 1: 30, 2: 3}, {0: 7, 1: 40, 2: 3}),
        ]

    def test_what_a_shard_has_is_not_counted_again(self) -> None:
        """Nothing to do at its end; and a piece has at least one record of each partition."""
        assert list(_slices(Level(0, {0: 7}, {0: 7}, {}), 12)) == []
        assert list(_slices(Level(0, {0: 5, 1: 0}, {0: 7, 1: 1}, {}), 1)) == [
            ({0: 5, 1: 0}, {0: 6, 1: 1}),
            ({0: 6, 1: 1}, {0: 7, 1: 1}),
        ]

    def test_no_piece_lies_on_both_sides_of_an_erasure(self) -> None:
        """What comes before it counts who was erased, what comes after it does not."""
        level = Level(0, {0: 5, 1: 2}, {0: 30, 1: 40}, {})
        before, within, beyond = {0: 5, 1: 1}, {0: 9, 1: 2, 2: 7}, {0: 50, 1: 50}
        pieces = list(_slices(level, 100, [before, within, beyond]))

        assert pieces == [
            ({0: 5, 1: 2}, {0: 9, 1: 2}),
            ({0: 9, 1: 2}, {0: 30, 1: 40}),
        ]
