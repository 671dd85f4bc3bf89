"""What must hold after every fault, and while it lasts (RELIABILITY 1 and 3).

The numbers are held against the recount (`recount.py`), which knows nothing of Weir; `judge.py`
says what is wrong with what is read here, and `traces.py` where an event that is missing stopped.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from account import Account, LogRecord, account_for, epoch_ms, read_log
from disruption.judge import (
    Watch,
    age_untold,
    copied,
    refused,
    stored,
    uncounted,
    unlisted,
    where_it_stopped,
)
from disruption.mixed_recount import compare_uses
from disruption.overdue import Overdue, Tally
from disruption.rig import PACE, Rig, promised_s
from disruption.sketched import assert_sketches
from disruption.traces import trace_of, where_one_stopped
from disruption.uses import METRIC, unseen, use_of, uses_of
from equality import AGGREGATES, PANE_MS, SPEC, is_filled
from load import GROUPS, TYPE, Load
from recount import Api, compare, compare_ledger, pane_query, panes_of
from weir.clock import SystemClock

# I16.
RECOVERY_S = promised_s(120.0)
# What is counted again after a wipe: the log, once more for each version that a backfill filled.
RECOUNTED_PER_S = 2_000
LOOK_S = 0.5
TENANT = "default"


@dataclass
class Reader:
    """A thread that reads the served counts during a fault and keeps what must not be (I6).

    A pane's count never falls within an epoch, and is never more than what was sent of its
    group with a time in it, nor less than what was acknowledged before processed-through (I11).
    Where Redis itself goes back, nobody knows until the driver has found out and begun an epoch:
    then counts may fall. Numbers that are old say so (I10), and those that are live do not vanish.

    Attributes:
        may_fall: Whether the fault takes Redis back in time.
        ahead_ms: By how much the fault puts a broker's clock ahead at most.
        looks: How often it has read.
        wrong: What must not be.
    """

    rig: Rig
    load: Load
    may_fall: bool = False
    ahead_ms: int = 0
    looks: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._watch = Watch()
        self._from_ms = epoch_ms(self.load.events(0)[0]["time"]) // PANE_MS * PANE_MS
        load = self.load
        self._sent = Tally(load.batches)
        self._overdue = Overdue(load.batches, load.answered_ms, ahead_ms=self.ahead_ms)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        api = Api(self.rig.dashboard_url, self.rig.key)
        while not self._stop.wait(LOOK_S):
            try:
                self._look(api)
            except urllib.error.HTTPError as error:
                if error.code == http.client.INTERNAL_SERVER_ERROR:
                    self.wrong.append("the dashboard answered 500, which no fault may bring about")
            except (OSError, ValueError):
                continue  # the dashboard or Redis is what the fault has taken away

    def _look(self, api: Api) -> None:
        span = (self._from_ms, self._from_ms + 3_600_000)
        body = pane_counts(span)
        asked_ms = SystemClock().now_ms()
        answer = api.call("POST", "/query", body)
        sent = self._sent.of_first(len(self.load.batches))
        found = {
            (series["by"]["group"], end_ms): count
            for series in answer["series"]
            for end_ms, count in zip(answer["t_ms"], series["count"], strict=True)
            if count is not None  # not known, which is not 0
        }
        self.looks += 1
        self.wrong += age_untold(answer["fresh"], asked_ms)
        self.wrong += self._overdue.take(answer, found, may_fall=self.may_fall)
        self.wrong += self._watch.take(
            answer["epoch"],
            found,
            sent,
            may_fall=self.may_fall,
            live=answer["fresh"]["status"] == "live",
        )


def pane_counts(span: tuple[int, int]) -> dict[str, Any]:
    """Return the query for the counts of all panes of the load."""
    return pane_query(SPEC, "count", PANE_MS, span)


def assert_holds(
    rig: Rig,
    load: Load,
    reader: Reader | None,
    *,
    errors: Iterable[str],
    before: Counter[tuple[str, str]],
    healed_s: float,
    recovery_s: float = RECOVERY_S,
    sketched: bool = False,
) -> None:
    """Assert I1 to I6, I10, I11, I16, and that nothing was logged as an error but what is listed.

    Args:
        rig: The stack, healed; the load has ended.
        load: What was sent to it.
        reader: What was read meanwhile.
        errors: Events that this fault may log as errors.
        before: What `Rig.errors` held before the fault.
        healed_s: When the fault was taken away, on the monotonic clock.
        recovery_s: How long the numbers may take to be right, from then on.
        sketched: Whether the metric with all that can be counted is there.
    """
    account = await_counted(rig, healed_s, recovery_s)
    records = read_log(rig.kafka_bootstrap)
    events = assert_panes(rig, load, account, records)
    ids = (event["id"] for event in account.counted)
    wrong = refused(records, f"{load.seed}-bad-", load.refused(), ids)
    assert not wrong, f"what was refused must be kept and not count: {wrong[:3]}"
    api = Api(rig.dashboard_url, rig.key)
    assert_uses(rig, api, account.counted, is_odd=load.odd > 0)
    if sketched:
        assert_sketches(rig, api, events)
    assert_read(rig, reader, errors=errors, before=before)


def assert_panes(
    rig: Rig,
    load: Load,
    account: Account,
    records: list[LogRecord],
    *,
    first: int = 0,
    from_ms: int = 0,
) -> list[dict[str, Any]]:
    """Assert I1 to I3 and I5 of the load's events; return those that count.

    Args:
        rig: The stack; all of its log is counted.
        load: What was sent to it; it has ended, or pauses.
        account: Of the log.
        records: The log.
        first: The first event that must be there: the log may have lost those before it.
        from_ms: Panes that start before it are left out, for the same reason.
    """
    found = [event for event in account.counted if event["type"] == TYPE]
    events = [event for event in found if event["_time_ms"] >= from_ms]
    numbers = [event["data"]["n"] for event in events]
    # Not a test module, so pytest shows no values by itself.
    misplaced = stored(numbers, load.acknowledged, load.sent, first=first)
    if misplaced:
        where = where_it_stopped(trace_of(rig, records, misplaced[0].number))
        msg = f"{misplaced[:3]}; {where}"
        raise AssertionError(msg)
    api = Api(rig.dashboard_url, rig.key)
    result = compare(api, panes_of(events, SPEC, PANE_MS), SPEC, AGGREGATES, PANE_MS)
    if result.mismatches:
        where = where_one_stopped(rig, records, events)
        msg = f"panes must equal the recount: {result.mismatches[:3]}; {where}"
        raise AssertionError(msg)
    assert result.points >= GROUPS
    return events


def assert_goes_on(
    rig: Rig, load: Load, *, first: int, from_ms: int = 0, sketched: bool = False
) -> None:
    """Assert I1 to I5 of a log that has lost something, from where it is whole again.

    Args:
        rig: The stack; all of its log is counted.
        load: What was sent to it; it pauses.
        first: The first event that the log must hold.
        from_ms: The instant, the beginning of a minute, from which on it holds all; 0: it is
            another log, of which everything is counted.
        sketched: Whether the metric with all that can be counted is there.
    """
    records, api = read_log(rig.kafka_bootstrap), Api(rig.dashboard_url, rig.key)
    account = account_for(records, tenant=TENANT)
    events = assert_panes(rig, load, account, records, first=first, from_ms=from_ms)
    if sketched:
        assert_sketches(rig, api, events)
    ledger = compare_ledger(api, account, from_ms=from_ms)
    assert ledger.mismatches == [], f"ledger and log must agree: {ledger.mismatches[:3]}"
    uses = compare_uses(api, METRIC, uses_of(account.counted), from_ms=from_ms)
    assert uses.mismatches == [], f"ledger and log must agree: {uses.mismatches[:3]}"
    assert ledger.points > 0, "no minute was compared"
    assert uses.points > 0, "no minute was compared"


def assert_uses(rig: Rig, api: Api, events: list[dict[str, Any]], *, is_odd: bool) -> None:
    """Assert I4 of the load's metric: what its version did with every event, and the copies.

    Args:
        rig: The stack.
        api: Its API.
        events: All that count.
        is_odd: Whether some were sent that are in no pane of the metric, for each reason.
    """
    uses = uses_of(events)
    assert not (is_odd and unseen(uses)), f"of no event became: {unseen(uses)}"
    found = compare_uses(api, METRIC, uses)
    assert found.mismatches == [], f"ledger and log must agree: {found.mismatches[:3]}"
    vid = api.call("GET", f"/definitions/metric/{METRIC}")["vid"]
    places = [event["_place"] for event in events if use_of(event) == "value_quarantined"]
    wrong = copied(places, read_log(rig.kafka_bootstrap, "weir.quarantine"), vid)
    assert not wrong, f"quarantine and log must agree: {wrong[:3]}"


def assert_read(
    rig: Rig,
    reader: Reader | None,
    *,
    errors: Iterable[str],
    before: Counter[tuple[str, str]],
) -> None:
    """Assert I6, I10 and I11 of what was read, and that no error was logged but what may.

    Args:
        rig: The stack.
        reader: What was read during the fault; None: nobody has read.
        errors: Events that this fault may log as errors.
        before: What `Rig.errors` held before the fault.
    """
    if reader is not None:
        assert reader.wrong == [], f"what was served during the fault: {reader.wrong[:3]}"
        assert reader.looks > 0, "the numbers could not be read during the fault"
    wrong = unlisted(rig.errors(), before, errors)
    assert not wrong, f"errors must be listed by the fault: {wrong}"


def await_counted(rig: Rig, healed_s: float, timeout_s: float = RECOVERY_S) -> Account:
    """Return the account of the log once it is counted (I4, I16).

    The lag is 0 then, the served ledger equals the account, and no pane is left that is being
    counted again: after a wipe an edited version is filled once more when the ledger is whole,
    and tells nothing of its panes until then.

    Args:
        rig: The stack; nothing comes any more.
        healed_s: When the fault was taken away, on the monotonic clock.
        timeout_s: How long all that may take from then on.

    Raises:
        AssertionError: If it is not in time; says what is wrong.
    """
    api = Api(rig.dashboard_url, rig.key)

    def found(differences: Sequence[str] = ()) -> list[str]:
        told = rig.api("GET", "/status").body
        status, lag = told["fresh"]["status"], told["lag"]["records"]
        return uncounted(differences, status, is_filled=is_filled(rig), lag=lag)

    while True:
        try:
            # An account of the whole log takes a core, which counting needs until then.
            wrong = found()
            if not wrong:
                account = account_for(read_log(rig.kafka_bootstrap), tenant=TENANT)
                wrong = found(compare_ledger(api, account).mismatches)
                if not wrong:
                    return account
        except urllib.error.HTTPError as error:
            wrong = [f"{error.code} {json.loads(error.read())['code']}"]
        except OSError as error:
            wrong = [str(error)]
        if time.monotonic() - healed_s > timeout_s:
            msg = f"{timeout_s:g} s after healing: {wrong[:5]}"
            raise AssertionError(msg)
        time.sleep(0.5)


def recount_s(rig: Rig) -> float:
    """Return how much longer the numbers may take where Redis was wiped: by the log's length."""
    return len(read_log(rig.kafka_bootstrap)) / RECOUNTED_PER_S * PACE
