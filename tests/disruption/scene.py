"""A rig under load, with a rule that fires as long as the load flows, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import redis
from alerts_job import SECRET, Receiver
from disruption.checker import RECOVERY_S, Reader, assert_holds, assert_read, recount_s
from disruption.rig import PACE, Rig, promised_s
from disruption.sketched import define_sketched
from equality import await_load, begin
from load import TYPE, Load
from weir.clock import SystemClock

# D2: after a kill, from when a keeper starts again what was killed.
FIRST_RESULT_S = promised_s(60.0)
# A driver is up within ten seconds where nothing else runs; CI has two busy cores.
PATIENCE_S = 300.0 * PACE
# RELIABILITY 3: what a fault meets is warm, and it lasts at least so long.
WARM_S, IMPACT_S = 15.0, 20.0
# A keeper would bring a part back: its way down, and what others say of it, is no news.
OF_ANY_FAULT = frozenset({"verdict"})
ALARM = f"""
kind: metric
name: alarm
events: {{type: {TYPE}}}
aggregates: [count]
resolution: 1s
keep: {{1s: 6h}}
allowed_lateness: 3s
"""
RULE = """
kind: rule
name: alarm
metric: alarm
aggregate: count
window: {length: 5s, step: 1s}
above: 3
recover: 1
message: "the load flows"
route: {channels: [alarm]}
"""


class Healed(NamedTuple):
    """When a fault was taken away; that what has died comes up again is part of recovering.

    Attributes:
        at_s: On the monotonic clock.
        at_ms: The same moment in the log's time.
        acknowledged: How many events had been acknowledged.
    """

    at_s: float
    at_ms: int
    acknowledged: int


@dataclass
class Scene:
    """A rig, its load, and the receiver of the rule's messages.

    Attributes:
        sketched: Whether the metric with all that can be counted is there, to be compared.
        impact_s: How long what is watched lasts at least, before it is healed.
        wiped: Whether Redis was emptied since what is watched began.
    """

    rig: Rig
    load: Load
    receiver: Receiver
    sketched: bool = False
    impact_s: float = 0.0
    wiped: bool = False

    def define_alarm(self) -> None:
        """Define the rule that fires while the load flows, its metric and its channel."""
        rig = self.rig
        (rig.home.secrets / "test_hook").write_text(SECRET)
        rig.define("metric", "alarm", ALARM)
        hook = f'{{url: "{self.receiver.url}", secret: "secret://test_hook"}}'
        rig.define(
            "channel", "alarm", f"kind: channel\nname: alarm\nwebhook: {hook}\nfollow: all\n"
        )
        rig.define("rule", "alarm", RULE)

    @contextmanager
    def watched(
        self,
        errors: Iterable[str] = (),
        *,
        redis_goes_back: bool = False,
        brokers_ahead_s: int = 0,
        recovery_s: float = RECOVERY_S,
    ) -> Iterator[Reader]:
        """Read during a fault; afterwards heal, drain, and check everything.

        Args:
            errors: Events that this fault may log as errors.
            redis_goes_back: Whether the fault takes Redis back in time.
            brokers_ahead_s: By how much the fault puts a broker's clock ahead at most.
            recovery_s: How long a new result, and equal numbers, may take from healing on; what
                was wiped is counted again besides.
        """
        self.wiped = False
        logged, until_s = self.rig.errors(), SystemClock().monotonic_s() + self.impact_s
        with Reader(self.rig, self.load, redis_goes_back, 1000 * brokers_ahead_s) as reader:
            yield reader
            self.pass_time(until_s)
            healed = self.heal()
            await_new_result(self.rig, recovery_s, since=healed)
        self.load.pause()
        try:
            assert_holds(
                self.rig,
                self.load,
                reader,
                errors={*errors, *OF_ANY_FAULT},
                before=logged,
                healed_s=healed.at_s,
                recovery_s=self.allowed_s(recovery_s),
                sketched=self.sketched,
            )
        finally:
            self.load.resume()  # the next test begins with a load, whatever this one found

    def allowed_s(self, recovery_s: float) -> float:
        """Return how long equal numbers may take: longer only where all is counted again."""
        return recovery_s + (recount_s(self.rig) if self.wiped else 0.0)

    @contextmanager
    def read(self, errors: Iterable[str] = ()) -> Iterator[Reader]:
        """Read during a fault after which the log is another one; check what was read and said.

        Args:
            errors: Events that this fault may log as errors.
        """
        logged = self.rig.errors()
        with Reader(self.rig, self.load, may_fall=True) as reader:
            yield reader
        assert_read(self.rig, reader, errors={*errors, *OF_ANY_FAULT}, before=logged)

    def pass_time(self, until_s: float) -> None:
        """Return at a moment of the monotonic clock; the load flows."""
        clock = SystemClock()
        left_s = until_s - clock.monotonic_s()
        if left_s > 0:
            self.rig.wait_until(
                lambda: clock.monotonic_s() >= until_s, "the time to pass", left_s + 30
            )

    def now(self) -> Healed:
        """Return this moment, at which a fault is taken away."""
        clock = SystemClock()
        return Healed(clock.monotonic_s(), clock.now_ms(), self.load.acknowledged)

    def heal(self) -> Healed:
        """Disarm everything, let everything pass, start what has ended, return when it is ready.

        Returns:
            When that began: from then on it is recovering.
        """
        healed = self.now()
        for part in ("ingest", "panes", "alerts", "dashboard"):
            self.rig.arm(part)
        for link in self.rig.links.values():
            link.heal()
        for store in ("redis", "kafka"):
            if self.rig.part(store).pid() is None:
                self.rig.restart(store)
        self.rig.revive()
        return healed

    def recover(self, within_s: float = FIRST_RESULT_S) -> None:
        """Heal, and wait until an event that was taken since is counted (D2).

        Ticks alone move numbers on, whatever has become of ingest: they are no result.

        Raises:
            TimeoutError: If it is not in time, from when what died was started again.
        """
        healed, clock, taken_ms = self.heal(), SystemClock(), 0
        what = "a new result of an event"

        def is_counted() -> bool:
            nonlocal taken_ms
            if not taken_ms and self.load.acknowledged > healed.acknowledged:
                taken_ms = clock.now_ms()
            return bool(taken_ms) and processed_through_ms(self.rig) > taken_ms

        left_s = time_left_s(clock.monotonic_s() - healed.at_s, within_s, what)
        self.rig.wait_until(is_counted, what, left_s)

    def more(self, events: int) -> None:
        """Wait until so many more events have been acknowledged."""
        await_load(self.rig, self.load, self.load.acknowledged + events)

    def wipe(self) -> None:
        """Empty Redis."""
        client = redis.Redis.from_url(self.rig.redis_url)
        client.flushall()
        client.close()
        self.wiped = True

    def crash(self, part: str, fail: str) -> None:
        """Have a part die at a point, and assert that it did.

        A part that runs is stopped first: an order is read at the start.
        """
        self.rig.forget(fail)
        self.rig.kill(part)
        self.rig.arm(part, fail)
        self.rig.stack.launch(part)
        self.rig.await_end(part, PATIENCE_S)
        assert self.rig.has_bitten(fail), f"{part} ended, and not at {fail}"


def history_in(folder: Path) -> Path:
    """Return the file with the history of a load, beside the logs of its stack."""
    return folder / "run" / "history.jsonl"


def history_of(given: Mapping[str, Any]) -> Path | None:
    """Return the history of a test's load; None if it has none.

    Args:
        given: What the test was given, by name: its folder, or a scene that it shares.
    """
    if "here" in given:
        shared: Path | None = given["here"].load.history
        return shared
    path = history_in(given["tmp_path"]) if "tmp_path" in given else None
    return path if path is not None and path.exists() else None


@contextmanager
def scene(
    folder: Path,
    seed: int,
    *,
    links: Iterable[str] = (),
    settings: dict[str, dict[str, str]] | None = None,
    load: Mapping[str, float] | None = None,
    kind: type[Load] = Load,
    mutants: Mapping[str, str] | None = None,
    kafka: Mapping[str, str] | None = None,
    lasting: bool = True,
    sketched: bool = True,
) -> Iterator[Scene]:
    """Yield a running stack under load, 500 events/s; all of it ends with the block.

    Args:
        folder: Where everything of it is kept.
        seed: Of this run.
        links: The links that get a proxy.
        settings: By service, environment that its process gets besides.
        load: What differs from the usual load, by attribute.
        kind: The load's class.
        mutants: By service, a mutant; "" for none.
        kafka: What the broker's `server.properties` says besides.
        lasting: Whether it is warm before anything is broken, and faults last; see `IMPACT_S`.
        sketched: Whether the metric with all that can be counted is compared, too (I5); a mutant
            is red by less.
    """
    quiet = {"WEIR_ALERTS_OWN_RULES": "false"}
    shards = {"WEIR_ANALYTICS_SHARDS": "2"}
    given = settings or {}
    settings = {
        **given,
        "panes": shards | given.get("panes", {}),
        "alerts": quiet | given.get("alerts", {}),
    }
    rig = Rig(folder, seed, links=links, settings=settings, mutants=mutants, kafka=kafka)
    receiver = Receiver()
    try:
        rig.start()
        begin(rig, seed)
        sketched = sketched and not rig.mutants
        if sketched:
            define_sketched(rig)
        running = kind(rig.ingest_url, rig.key, str(seed), history=history_in(folder))
        for name, value in {"batch": 50, "bad": 1, "odd": 1, **(load or {})}.items():
            setattr(running, name, value)
        with running:
            impact_s = IMPACT_S if lasting else 0.0
            here = Scene(rig, running, receiver, sketched=sketched, impact_s=impact_s)
            here.pass_time(SystemClock().monotonic_s() + (WARM_S if lasting else 0.0))
            yield here
    finally:
        rig.stop()
        receiver.close()


def await_new_result(
    rig: Rig, timeout_s: float = PATIENCE_S, *, since: Healed | None = None
) -> None:
    """Wait until what is received from now on is counted.

    Args:
        rig: The stack.
        timeout_s: Before a fault, patience; after it, what its row promises.
        since: What is waited for, and how long, is reckoned from then on; None: from now on.

    Raises:
        TimeoutError: If it is not in time.
    """
    what, left_s = "a new result", timeout_s
    begin_ms = SystemClock().now_ms() if since is None else since.at_ms
    if since is not None:
        left_s = time_left_s(SystemClock().monotonic_s() - since.at_s, timeout_s, what)
    rig.wait_until(lambda: processed_through_ms(rig) > begin_ms, what, left_s)


def time_left_s(passed_s: float, timeout_s: float, what: str) -> float:
    """Return how long something may still take that is promised from a moment on.

    Args:
        passed_s: How long ago that moment was.
        timeout_s: How long it may take from then on.
        what: What is waited for.

    Raises:
        TimeoutError: If that long has passed already: what had died was not ready before.
    """
    if passed_s >= timeout_s:
        msg = f"could not see {what} within {timeout_s:g} s: all was ready after {passed_s:.1f} s"
        raise TimeoutError(msg)
    return timeout_s - passed_s


def processed_through_ms(rig: Rig) -> int:
    """Return up to when everything that was received is counted; 0 if nobody knows."""
    return int(rig.fresh()["processed_through_ms"] or 0)
