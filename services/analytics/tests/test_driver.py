"""The driver around its stream, without Spark: who waits for whom when it ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from weir_analytics.panes.driver import Driver
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
