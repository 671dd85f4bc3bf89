"""`make soak MINUTES=n RATE=r`: load and bursts, random faults, edits and restarts.

It fails by itself: one JSON line a minute, then one with every row of RELIABILITY 7, each with
what was seen and whether it passes. The seed is in the first line, and `WEIR_SEED` repeats it.
`WEIR_SOAK_KEEP=1` leaves the folder for a look.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import equality
from account import MINUTE_MS, Account, dispositions, epoch_ms, records_of
from disruption import soak_alerts
from disruption.checker import RECOUNTED_PER_S, Reader
from disruption.mixed_recount import Totals, compare_totals
from disruption.proxy import Conditions
from disruption.rig import PACE, SERVICES, promised_s
from disruption.scene import Scene, await_new_result, scene
from disruption.soak_load import (
    FULL_MIN,
    HORIZON_MS,
    KEEP_MS,
    MOST_OF_A_BATCH,
    PANE_MS,
    SPEC,
    SoakLoad,
    define,
)
from disruption.soak_summary import (
    Row,
    Seen,
    account_of,
    as_json,
    passes,
    quantile,
    rounded,
    rows,
)
from disruption.soak_watch import (
    Frames,
    Revisions,
    Spans,
    asked,
    batch_ms,
    instant_ms,
    lag,
    messages_of,
    sample,
    unexplained,
    verdict_lines,
    verdicts,
)
from load import TYPE
from recount import LEDGER_PAGE, Api, compare_ledger
from weir.clock import SystemClock
from weir_local.seeds import seed_of_run

# Events a second: under a hundredth of what two cores were seen to count (63,397/s,
# `bench-latency`). All of the log is read again for each comparison and counted again for each edit
# and wipe, some fifteen times in half an hour: at half load throughout that alone would take hours.
RATE = 500
# Half of what was measured, for a part of each ten minutes; a fault meets the second half of it.
BURST_PER_S, BURST_S, BURST_EVERY_S = 31_700, 20.0, 600.0
EVERY_S = 0.1
EDIT_EVERY_S, RESTART_EVERY_S = 180.0, 600.0
CALM_S = (20.0, 45.0)
SETTLE_S = 5.0
RECOVERY_S = promised_s(120.0)


class Soak:
    """One soak.

    Attributes:
        here: The stack under load.
        minutes: How long.
        spans: When something was broken.
    """

    def __init__(self, here: Scene, minutes: float, seed: int) -> None:
        self.here, self.minutes = here, minutes
        self.chance = random.Random(seed)  # noqa: S311
        self.spans = Spans()
        self.seen = Seen(minutes, promised_s(1.0))
        self.faults: Counter[str] = Counter()
        self.edits = self.restarts = self.comparisons = 0
        self._version = 1

    def run(self) -> list[Row]:
        """Break things until the time is over, then hold everything against the recount."""
        here, rig = self.here, self.here.rig
        define(here, self._version)
        with (
            Reader(rig, here.load) as self.reader,
            Revisions(rig, here.load, self.spans) as revisions,
            Frames(rig, here.load, self.spans) as frames,
        ):
            assert isinstance(revisions, Revisions)
            assert isinstance(frames, Frames)
            self.revisions, self.frames = revisions, frames
            self._go_on()
            self._heal("end")
        here.load.pause()
        self.judge()
        return rows(self.seen)

    def _go_on(self) -> None:
        """Do what is due, in turn: a fault after each calm time, an edit, a restart, a line."""
        began_s = time.monotonic()
        due: list[tuple[float, Callable[[], None], Callable[[], float]]] = [
            (60.0, self.tell_minute, lambda: 60.0),
            (self.chance.uniform(*CALM_S), self.fault, lambda: self.chance.uniform(*CALM_S)),
            (EDIT_EVERY_S, self.edit, lambda: EDIT_EVERY_S),
            (RESTART_EVERY_S, self.restart, lambda: RESTART_EVERY_S),
            (BURST_EVERY_S / 2, self.burst, lambda: BURST_EVERY_S),
        ]
        while (now_s := time.monotonic() - began_s) < self.minutes * 60:
            for n, (at_s, act, wait_s) in enumerate(due):
                if now_s >= at_s:
                    act()
                    # A line is of each minute; what breaks waits until it was calm again.
                    next_s = at_s if act == self.tell_minute else time.monotonic() - began_s
                    due[n] = (next_s + wait_s(), act, wait_s)
            time.sleep(0.2)
        self.tell_minute()

    # ── what happens ────────────────────────────────────────────────────────

    def fault(self) -> None:
        """Break something at random, heal it, and wait for a new result."""
        faults = [self.kill, self.wipe, self.slow_redis, self.lose_reply, self.silence_kafka]
        what = self.chance.choices(faults, weights=[5, 1, 1, 1, 1])[0]
        what()

    def kill(self) -> None:
        """Kill a part."""
        part = self.chance.choice((*SERVICES, "redis", "kafka"))
        # Redis may lose its last second.
        with self._broken(f"kill {part}", may_fall=part == "redis"):
            self.here.rig.kill(part)

    def wipe(self) -> None:
        """Empty Redis, once what it holds was compared: afterwards all is counted anew."""
        self.compare()
        with self._broken("wipe", may_fall=True):
            self.here.wipe()

    def slow_redis(self) -> None:
        """Have each answer of Redis take 300 ± 200 ms, for twenty seconds."""
        with self._broken("slow redis"):
            self.here.rig.links["panes-redis"].now = Conditions(delay_s=0.15, jitter_s=0.1)
            time.sleep(20)

    def lose_reply(self) -> None:
        """Lose the reply to a commit."""
        link = self.here.rig.links["panes-redis"]
        with self._broken("lose reply"):
            lost = link.lost
            link.now.lose_reply_to = b"EXEC"
            link.await_lost(lost + 1, 60 * PACE)

    def silence_kafka(self) -> None:
        """Let nothing pass between ingest and Kafka for ten seconds."""
        with self._broken("silent kafka"):
            link = self.here.rig.links["ingest-kafka"]
            link.now = Conditions(silent=frozenset({"up", "down"}))
            time.sleep(10)

    def edit(self) -> None:
        """Make a new version of the metric, which is counted from the log and takes over."""
        self.compare()
        self.edits += 1
        self.spans.begin("edit")
        self._version = define(self.here, self._version + 1)
        self.spans.end(30.0)

    def burst(self) -> None:
        """Send at half of what two cores carry: the numbers stay fresh, and then a fault meets it.

        Not all that is asked for is sent where the sender has no core to itself; what is, is told.
        """
        load, seen = self.here.load, self.seen
        assert isinstance(load, SoakLoad)
        self.spans.begin("burst")
        began_s, before = time.monotonic(), load.acknowledged
        load.burst(BURST_S, max(round(load.batch / EVERY_S), BURST_PER_S))
        time.sleep(BURST_S / 2)
        at_s = time.monotonic()
        seen.burst_per_s.append(round((load.acknowledged - before) / (at_s - began_s)))
        try:
            await_new_result(self.here.rig)
        except TimeoutError as error:
            seen.wrong.append(f"in a burst: {error}")
        seen.burst_fresh_s.append(round(time.monotonic() - at_s, 2))
        self.spans.end()
        self.fault()

    def compare(self) -> None:
        """Hold what is served against the recount; the load waits meanwhile."""
        self.spans.begin("compare")
        self.here.load.pause()
        self._judge_numbers()
        self.here.load.resume()
        self.spans.end(SETTLE_S)
        self.comparisons += 1

    def restart(self) -> None:
        """Stop the driver as an orchestrator does, and start it."""
        self.restarts += 1
        self.spans.begin("restart")
        rig = self.here.rig
        rig.part("panes").stop(timeout_s=60)
        self._heal("restart")
        self.spans.end(SETTLE_S)

    @contextlib.contextmanager
    def _broken(self, what: str, *, may_fall: bool = False) -> Iterator[None]:
        self.faults[what] += 1
        self.spans.begin(what, is_fault=True)
        self.reader.may_fall = may_fall
        try:
            yield
            self._heal(what)
        finally:
            self.reader.may_fall = False
            self.spans.end(SETTLE_S)

    def _heal(self, what: str) -> None:
        """Heal, and wait for a new result, and until what was lost is counted again.

        Until then numbers are told to be rebuilding: no reader takes them for fresh.
        """
        rig = self.here.rig
        try:
            await_new_result(rig, RECOVERY_S, since=self.here.heal())
            rig.wait_until(lambda: asked(self._is_whole), "what was lost", RECOVERY_S)
        except TimeoutError as error:
            self.seen.wrong.append(f"after {what}: {error}")

    # ── what is told ────────────────────────────────────────────────────────

    def tell_minute(self) -> None:
        """Print one JSON line of how it is now."""
        here, seen = self.here, self.seen
        minute = len(seen.samples) + 1
        load = here.load
        assert isinstance(load, SoakLoad)
        slices = len(here.rig.lines("panes", "slice"))
        one = replace(sample(here.rig, minute), sent=load.items, slices=slices)
        seen.samples.append(one)
        told = {
            "minute": minute,
            **load.told(),
            "revision_p50_s": rounded(quantile([a for _, a in self.revisions.ages], 0.5)),
            "revision_p99_s": rounded(quantile([a for _, a in self.revisions.ages], 0.99)),
            "frame_p50_s": rounded(quantile([a for _, a in self.frames.ages], 0.5)),
            "frame_p99_s": rounded(quantile([a for _, a in self.frames.ages], 0.99)),
            "frame_gap_s": round(self.frames.gap_s(), 2),
            "batch_p99_ms": rounded(quantile(batch_ms(here.rig), 0.99)),
            "verdicts": verdicts(here.rig),
            "lag": lag(here.rig),
            "rss_mb": {k: round(v / 1e6) for k, v in seen.samples[-1].rss.items()},
            **{k: round(v, 1) for k, v in seen.samples[-1].flat.items()},
            "alerts": asked(lambda: messages_of(here)),
            "ledger": self._account(),
            # As of the newest comparison, which reads the whole log.
            "recounted": {
                **seen.dispositions,
                "quarantined_by_reason": seen.quarantined,
                "in_log": seen.in_log,
            },
            "faults": dict(self.faults),
            "bursts_per_s": seen.burst_per_s,
            "edits": self.edits,
            "restarts": self.restarts,
            "comparisons": self.comparisons,
            "panes_compared": seen.compared,
            "mismatches": len(seen.mismatches),
        }
        say(told)

    def _account(self) -> dict[str, Any] | None:
        """Return what the served ledger says now; None while the dashboard does not answer.

        What differs there is a fault only if it stays, which each comparison finds; that a
        batch accounts for every record it has read must hold at any moment.
        """
        rig = self.here.rig
        api = Api(rig.dashboard_url, rig.key)
        told = asked(lambda: account_of(api.call("GET", f"/ledger?minutes={LEDGER_PAGE}")))
        if told and told["difference_of_batches"]:
            self.seen.difference.append(f"batches: {told['difference_of_batches']} records")
        return told

    # ── what is judged ──────────────────────────────────────────────────────

    def judge(self) -> None:
        """Hold everything against the recount."""
        seen, here = self.seen, self.here
        load = here.load
        assert isinstance(load, SoakLoad)
        for name, items in load.told().items():
            setattr(seen, name, items)
        self._judge_numbers()
        seen.wrong += self.reader.wrong
        seen.fresh_s, seen.frame_s = self.revisions.calm_s(), self.frames.calm_s()
        seen.frame_gap_s = self.frames.gap_s()
        self._judge_engine()
        self._judge_alerts()
        seen.keep_min, seen.horizon_min = FULL_MIN, HORIZON_MS / 60_000

    def _judge_numbers(self) -> None:
        seen, rig = self.seen, self.here.rig
        account = Account()
        panes: dict[tuple[int, str], Totals] = defaultdict(Totals)
        # Of the metric that is never edited: a fault does not vanish with its next version.
        groups: dict[tuple[int, str], Totals] = defaultdict(Totals)
        kinds: Counter[str] = Counter()
        numbers: set[int] = set()
        seen.in_log = 0
        with contextlib.suppress(TimeoutError):
            await_new_result(rig, RECOVERY_S)
        for record, disposition, event in dispositions(records_of(rig.kafka_bootstrap), HORIZON_MS):
            seen.in_log += 1
            account.minutes[record.received_ms - record.received_ms % MINUTE_MS][disposition] += 1
            if disposition == "quarantined":
                kinds[bytes(record.headers.get("weir-reason", b"none")).decode()] += 1
            if disposition == "counted" and event is not None and event["type"] == TYPE:
                at_ms = event["_time_ms"]
                numbers.add(event["data"]["n"])
                panes[at_ms - at_ms % PANE_MS, event["data"]["cell"]].add(event["data"]["n"])
                group_at_ms = at_ms - at_ms % equality.PANE_MS
                groups[group_at_ms, event["data"]["group"]].add(event["data"]["n"])
        seen.dispositions, seen.quarantined = dict(account.totals), dict(kinds)
        if missing := set(range(self.here.load.acknowledged)) - numbers:
            seen.mismatches.append(f"{len(missing)} are not in the log, such as {min(missing)}")
        oldest_ms = SystemClock().now_ms() - KEEP_MS + 300_000
        kept = {key: totals for key, totals in panes.items() if key[0] >= oldest_ms}
        api = Api(rig.dashboard_url, rig.key)
        self._await_filled(RECOVERY_S + seen.in_log / RECOUNTED_PER_S * PACE)
        deadline_s = time.monotonic() + RECOVERY_S
        while True:
            ledger = compare_ledger(api, account).mismatches
            compared = compare_totals(api, kept, SPEC, PANE_MS)
            whole = compare_totals(api, groups, equality.SPEC, equality.PANE_MS)
            wrong = [*compared.mismatches, *whole.mismatches]
            if not (ledger or wrong) or time.monotonic() > deadline_s:
                break
            time.sleep(1)
        seen.difference += ledger
        seen.compared = max(seen.compared, len(kept) + len(groups))
        seen.mismatches += wrong

    def _await_filled(self, timeout_s: float) -> None:
        """Wait until nothing is counted again: to ask for every pane meanwhile takes a core of it.

        What is not there in time is found missing by the comparison.
        """
        what = "nothing that is counted again"
        with contextlib.suppress(TimeoutError):
            self.here.rig.wait_until(lambda: asked(self._is_whole), what, timeout_s)

    def _is_whole(self) -> bool:
        rig = self.here.rig
        is_filled = all(equality.is_filled(rig, metric) for metric in ("load", SPEC.name))
        return is_filled and rig.fresh()["status"] != "rebuilding"

    def _judge_engine(self) -> None:
        seen, rig = self.seen, self.here.rig
        seen.batch_ms, seen.verdicts = batch_ms(rig), verdicts(rig)
        seen.unexpected += unexplained(verdict_lines(rig), self.spans)
        for part in SERVICES:
            for level in ("error", "critical"):
                for line in rig.lines(part, level=level):
                    if not self.spans.is_broken(instant_ms(line["at"])):
                        seen.errors.append(f"{part} {line.get('event')} {line['at']}")
        with contextlib.suppress(TimeoutError):
            rig.wait_until(lambda: lag(rig) == 0, "no lag", 30 * PACE)
        seen.lag = lag(rig)

    def _judge_alerts(self) -> None:
        """Compare the messages that are due with those that came; the load ends before."""
        seen, here = self.seen, self.here
        with contextlib.suppress(TimeoutError):
            here.rig.wait_until(
                lambda: here.receiver.bodies and here.receiver.bodies[-1]["kind"] == "resolved",
                "the end of the alarm",
                120 * PACE,
            )
        deadline_s = time.monotonic() + 60 * PACE
        while True:
            told = messages_of(here)
            if told["due"] == told["delivered"] or time.monotonic() > deadline_s:
                break
            time.sleep(1)
        seen.due, seen.delivered = told["due"], told["delivered"]
        seen.repeated, seen.latest_s = told["duplicates"], told["latest_s"]
        batches = [
            (epoch_ms(time_text), count)
            for first, count, time_text in here.load.batches
            if first < here.load.acknowledged
        ]
        wanted = soak_alerts.expected(batches)
        seen.episodes = len(wanted)
        seen.unlike = soak_alerts.unlike(wanted, soak_alerts.told(here.receiver.bodies))


def say(line: dict[str, Any]) -> None:
    """Print one JSON line."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def options(arguments: list[str]) -> tuple[float, int]:
    """Return minutes and events a second, the usual ones where none are named.

    Raises:
        SystemExit: If that is no load.
    """
    minutes, rate, *_ = [*arguments, *("10", str(RATE))[len(arguments) :]]
    least, most = round(1 / EVERY_S), round(MOST_OF_A_BATCH / EVERY_S)
    if not rate.isdigit() or not least <= int(rate) <= most:
        msg = f'the rate must be {least} to {most} events a second, got "{rate}"; say RATE={RATE}'
        raise SystemExit(msg)
    return float(minutes), int(rate)


def main(arguments: list[str]) -> int:
    """Soak for so many minutes, at so many events a second; return 1 if a row does not pass."""
    minutes, rate = options(arguments)
    seed = seed_of_run()
    folder = Path(tempfile.mkdtemp(prefix="weir-soak-"))
    say({"seed": seed, "minutes": minutes, "events_per_s": rate, "folder": str(folder)})
    links = ("panes-redis", "ingest-kafka")
    with scene(
        folder,
        seed,
        links=links,
        settings={
            "panes": {"WEIR_ANALYTICS_HORIZON_MS": str(HORIZON_MS)},
            # The default is full after hours, and until then growing memory says nothing.
            "dashboard": {"WEIR_DASHBOARD_CACHE_BYTES": str(16 * 2**20)},
        },
        load={"batch": round(rate * EVERY_S), "at_most": round(60 * minutes * BURST_PER_S)},
        kind=SoakLoad,
        lasting=False,
        # It compares millions of events by their totals, minute after minute: to hold sketches
        # against a recount takes all values of each pane, half a million in that of a burst.
        sketched=False,
    ) as here:
        here.define_alarm()
        found = Soak(here, minutes, seed).run()
    say(as_json(found))
    for row in found:
        word = {True: "passes", False: "FAILS", None: "not judged"}[row.passes]
        why = f": {row.value['why']}" if row.passes is None else ""
        sys.stdout.write(f"{word:<11}{row.figure}{why}\n")
    if passes(found) and not os.environ.get("WEIR_SOAK_KEEP"):
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    again = f"WEIR_SEED={seed} make soak MINUTES={minutes:g} RATE={rate}"
    sys.stdout.write(f"to repeat it: {again}; {folder}\n")
    return 0 if passes(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
