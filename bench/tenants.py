"""Tenants apart: what one tenant sees alone, and beside one that sends a million series.

The quiet tenant sends a hundred events a second, the same bytes in both runs of a round. Beside
it the noisy one sends at its quota, each event a series of its own. Once a quarter of them is
sent it defines a metric that takes all that a tenant's panes may take: the plan with it is made,
and what came before is counted after, within the measured time, as is the rest live. A day more
of it is refused first, and that refusal and the note that its series are capped are compared
with their exact texts.

How fresh the quiet tenant's numbers are is how long after an answer of ingest the served
numbers are past that moment. Every pane that is served to it, of every aggregate, is compared
with that of its run alone and with what was sent; the noisy tenant's total with what was
accepted of it.

Runs a stack of its own for each, in a temporary folder; nothing of a running one is touched.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
import sys
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
from confluent_kafka import Producer
from paced import Paced
from rest import by_process, cores_between
from tenant_loads import (
    NOISY_BODY,
    PANE_MS,
    QUIET_EVERY_S,
    QUIET_METRIC,
    Panes,
    Quiet,
    differences,
    iso,
    noisy_bodies,
    noisy_metric,
)
from weir import names
from weir.clock import SystemClock
from weir.definitions.records import Edit, put_record
from weir_local.client import ApiClient, ApiError
from weir_local.testing import TestStack

CLOCK = SystemClock()
NOISY = "noisy"
SERIES, KEPT = 1_000_000, 1_000
LOOK_S = 0.05
WITHIN_S = 300.0
# Of what the noisy tenant sends, how much it has sent when it defines its metric.
BEFORE = 0.25
# A stack of its own, and what is waited for at its end.
AROUND_S = 60
CAPPED = (
    "more series than the metric keeps; those without a row of their own are "
    'in "other" and not known one by one'
)
BUDGET = {
    "pointer": "/keep",
    "required": "at most 549755813888 bytes of panes, what is left of 549755813888",
    "mend": "lower max_series ({kept}), keep less, or ask for fewer or smaller sketches",
}


@dataclass
class Looks:
    """When the served numbers were seen to be past which moment."""

    stack: TestStack
    at_ms: list[int] = field(default_factory=list)
    through_ms: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            fresh = self.stack.api("GET", "/status").body["fresh"]
            self.at_ms.append(CLOCK.now_ms())
            self.through_ms.append(int(fresh["processed_through_ms"] or 0))

    def seen_ms(self, answered_ms: int) -> int:
        """Return when the numbers were seen to be past a moment."""
        return self.at_ms[bisect_left(self.through_ms, answered_ms)]

    def stop(self) -> None:
        """Stop once the last moment is past."""
        now_ms = CLOCK.now_ms()
        self.stack.wait_until(
            lambda: bool(self.through_ms) and self.through_ms[-1] > now_ms,
            "numbers past the end",
            WITHIN_S,
        )
        self._stop.set()
        self._thread.join(10)


class Work:
    """What every process and every batch costs, from now on."""

    def __init__(self, stack: TestStack) -> None:
        self._stack, self._began_s = stack, CLOCK.monotonic_s()
        self._before, self._lines = by_process(stack), len(stack.log("panes").splitlines())

    def until_now(self) -> dict[str, Any]:
        """Return cores by kind of process, and how long batches took, of how many events."""
        took_s = CLOCK.monotonic_s() - self._began_s
        cores = cores_between(self._before, by_process(self._stack), took_s)
        lines = self._stack.log("panes").splitlines()[self._lines :]
        found = [json.loads(line) for line in lines if line.startswith('{"rev"')]
        batches = [one for one in found if one["event"] == "batch"]
        return {
            "cores": {kind: round(used, 3) for kind, used in sorted(cores.items()) if used > 0},
            "batch_ms": harness.spread([one["ms"] for one in batches]),
            "batch_events": harness.spread([one["received"] for one in batches]),
            "batches": len(batches),
            "large_batches": sum(not one["small"] for one in batches),
        }


def key_of(stack: TestStack, tenant: str) -> str:
    """Define a key of another tenant, as the dashboard does of its own; return it."""
    key_id = secrets.token_hex(4)
    key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
    hash_key = (stack.home.secrets / "hash_key").read_bytes()
    digest = hmac.new(hash_key, key.encode(), hashlib.sha256).hexdigest()
    scopes = ["ingest", "read", "define"]
    text = {"kind": "key", "name": key_id, "hash": digest, "scopes": scopes, "source": "bench"}
    record = put_record(Edit(tenant, "key", key_id, None, "bench", 0), json.dumps(text))
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    producer.produce(names.DEFINITIONS, record.value, record.key)
    producer.flush(10)
    return key


@contextmanager
def running(quota_per_s: int) -> Iterator[TestStack]:
    """Start a stack in which each tenant has a quota; end it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        stack = TestStack(Path(folder))
        ingest = stack.stack.parts["ingest"]
        ingest.env = {**ingest.env, "WEIR_INGEST_QUOTA_EVENTS_PER_S": str(quota_per_s)}
        try:
            stack.start()
            stack.define("metric", "quiet", QUIET_METRIC)
            progress = "/definitions/metric/quiet/progress"
            stack.wait_until(lambda: stack.api("GET", progress).body["serving"], "quiet served", 60)
            yield stack
        finally:
            stack.stop()


@dataclass
class Noisy:
    """The noisy tenant on one stack.

    Attributes:
        load: What it sends.
        kept: How many series its metric keeps.
        defined_after: How many bodies were accepted when its metric was put; None: not yet.
    """

    stack: TestStack
    load: Paced
    api: ApiClient
    kept: int
    defined_after: int | None = None
    served_after: int | None = None
    _refused: str = ""
    _failed: Exception | None = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._define, daemon=True)

    @classmethod
    def ready(cls, stack: TestStack, options: argparse.Namespace) -> Noisy:
        """Give it its key, and make what it sends."""
        key = key_of(stack, NOISY)
        api = ApiClient(stack.dashboard_url, key, patience_s=60)
        stack.wait_until(lambda: knows(api), "the key of the noisy tenant")
        bodies = noisy_bodies(options.series)
        load = Paced(stack.ingest_url, key, bodies, options.seconds / len(bodies))
        return cls(stack, load, api, options.kept)

    def start(self) -> None:
        """Send, and define the metric meanwhile."""
        self.load.start()
        self._thread.start()

    def join(self) -> None:
        """Return when all is sent, and the metric is defined and serves.

        Raises:
            RuntimeError: If it was defined when all was sent already, or a larger one was not
                refused in the words that are promised.
            TimeoutError: If it did not come to serve.
        """
        self.load.join()
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        if self.defined_after is None or not 0 < self.defined_after < len(self.load.bodies):
            msg = (
                f"the metric must be defined while its {len(self.load.bodies)} bodies are sent,"
                f" was after {self.defined_after}"
            )
            raise RuntimeError(msg)

    def _define(self) -> None:
        try:
            early = max(1, round(BEFORE * len(self.load.bodies)))
            wait = self.stack.wait_until
            wait(lambda: self.load.accepted >= early, "a quarter of what is sent", WITHIN_S)
            text, larger = noisy_metric(self.kept)
            self._refused = refusal(self.api, larger, self.kept)
            put(self.api, text)
            self.defined_after = self.load.accepted
            wait(self._serves, "the noisy tenant's metric, counted from the first event", WITHIN_S)
            self.served_after = self.load.accepted
        except Exception as error:  # noqa: BLE001  raised where it is waited for
            self._failed = error

    def _serves(self) -> bool:
        told = self.api.call("GET", "/api/v1/definitions/metric/noisy/progress", None, None)
        return bool(told.body["serving"])

    def told(self) -> dict[str, Any]:
        """Return what it is told when everything of it is counted.

        Raises:
            RuntimeError: If it is not told that it is capped, in the words that are promised.
            TimeoutError: If its total does not become what was accepted.
        """
        accepted = self.load.accepted * NOISY_BODY
        wait = self.stack.wait_until
        wait(lambda: self._total() == accepted, "the noisy tenant's total", WITHIN_S)
        by_user = self._answer(by=["data.user"], limit={"top": 5, "other": True})
        notes = [note["message"] for note in by_user["notes"] if note["code"] == "capped"]
        if notes != [CAPPED]:
            msg = f'a tenant with so many series must be told "{CAPPED}" once, was told {notes}'
            raise RuntimeError(msg)
        return {
            "accepted": accepted,
            "refused": self.load.refused,
            "told": notes[0],
            "told_of_a_larger_definition": self._refused,
            "defined_after_share": self._share(self.defined_after),
            "served_after_share": self._share(self.served_after),
        }

    def _share(self, bodies: int | None) -> float | None:
        return None if bodies is None else round(bodies / len(self.load.bodies), 3)

    def _total(self) -> int:
        return sum(n or 0 for one in self._answer()["series"] for n in one["count"])

    def _answer(self, **more: Any) -> dict[str, Any]:
        end_ms = CLOCK.now_ms() // PANE_MS * PANE_MS + PANE_MS
        span = {"from": iso(end_ms - 1_800_000), "to": iso(end_ms)}
        window = {"window": {"kind": "tumbling", "length": "10s"}, "step": "10s"}
        asked = {"metric": "noisy", "aggregate": "count", "range": span, **window, **more}
        body: dict[str, Any] = self.api.call("POST", "/api/v1/query", asked, None).body
        return body


def put(api: ApiClient, text: str) -> None:
    """Put the noisy tenant's metric."""
    api.call("PUT", "/api/v1/definitions/metric/noisy", {"text": text}, {"If-None-Match": "*"})


def refusal(api: ApiClient, text: str, kept: int) -> str:
    """Return in which words a metric beyond the budget is refused.

    Raises:
        RuntimeError: If it is not, or in other words than promised.
    """
    try:
        put(api, text)
    except ApiError as error:
        found = error.body["errors"][0]
        wanted = {name: said.format(kept=kept) for name, said in BUDGET.items()}
        if error.body["code"] == "budget_exceeded" and wanted.items() <= found.items():
            return f"required {found['required']}; got {found['got']}; {found['mend']}"
        msg = f"a metric beyond the budget must be refused with {wanted}, got {error.body}"
        raise RuntimeError(msg) from None
    msg = "a metric beyond the budget must be refused, was taken"
    raise RuntimeError(msg)


def knows(api: ApiClient) -> bool:
    """Return whether a key is known by now."""
    try:
        return api.call("GET", "/api/v1/status", None, None).status == 200
    except Exception:  # noqa: BLE001  not yet
        return False


def run(quiet: Quiet, options: argparse.Namespace, *, beside: bool) -> tuple[dict[str, Any], Panes]:
    """Return how fresh the quiet tenant's numbers were, and all its panes.

    Raises:
        RuntimeError: If a number was not what was sent, or the noisy tenant was told otherwise
            than promised.
    """
    with running(round(options.series / options.seconds)) as stack:
        noisy = Noisy.ready(stack, options) if beside else None
        load = Paced(stack.ingest_url, stack.key, quiet.bodies, QUIET_EVERY_S)
        warm = round(options.warm_s / QUIET_EVERY_S)
        load.start()
        stack.wait_until(lambda: load.accepted >= warm, "warm", WITHIN_S)
        looks, work = Looks(stack), Work(stack)
        if noisy is not None:
            noisy.start()
        load.join()
        cost = work.until_now()
        looks.stop()
        pairs = list(zip(load.due_ms, load.answered_ms, strict=True))[warm + 1 :]
        found: dict[str, Any] = {
            "fresh_ms": harness.spread([looks.seen_ms(at) - at for _due, at in pairs]),
            "from_due_ms": harness.spread([looks.seen_ms(at) - due for due, at in pairs]),
            "answers": len(pairs),
            **cost,
        }
        if noisy is not None:
            noisy.join()
            found |= noisy.told()
            noisy.api.close()
        served = quiet.served(stack)
    counted = {key: (p[0], p[-1]) for key, p in served.items() if key[0] in ("count", "sum")}
    if wrong := differences(counted, quiet.sent()):
        msg = f"the quiet tenant's panes must be what it sent, {len(wrong)} are not: {wrong[:3]}"
        raise RuntimeError(msg)
    return found, served


def round_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return both runs of a round, and how many panes were compared.

    Raises:
        RuntimeError: If a pane of the quiet tenant is not that of its run alone.
    """
    quiet = Quiet(CLOCK.now_ms(), options.warm_s + options.seconds)
    alone, panes = run(quiet, options, beside=False)
    beside, panes_beside = run(quiet, options, beside=True)
    wrong = differences(panes, panes_beside)
    sys.stderr.write(f"  {len(panes)} panes compared, {len(wrong)} differ\n")
    if wrong:
        msg = f"{len(wrong)} of {len(panes)} panes must be those of the run alone: {wrong[:3]}"
        raise RuntimeError(msg)
    return {"alone": alone, "beside": beside, "panes_compared": len(panes), "panes_differ": 0}


def bars(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bars of all rounds, by their medians."""
    fresh = {
        how: harness.median_of([one[how]["fresh_ms"]["p99"] for one in rounds], 0)
        for how in ("alone", "beside")
    }
    ratio = round(fresh["beside"]["median"] / fresh["alone"]["median"], 2)
    due = harness.median_of([one["beside"]["from_due_ms"]["p99"] for one in rounds], 0)
    compared = sum(one["panes_compared"] for one in rounds)
    differ = sum(one["panes_differ"] for one in rounds)
    told = [
        ("p99 of freshness alone", "", f"{fresh['alone']['median']:.0f} ms"),
        (
            "p99 of freshness beside a noisy tenant",
            "< 3000 ms",
            f"{fresh['beside']['median']:.0f} ms",
        ),
        ("the same over that alone", "≤ 1.25", ratio),
        ("the same from when a request was due", "", f"{due['median']:.0f} ms"),
        (
            "panes unlike those of the run alone",
            "≤ 0 panes",
            f"{differ} panes (of {compared:,} compared)",
        ),
    ]
    return [{"id": "tenants", "what": what, "reach": r, "got": got} for what, r, got in told]


def main() -> int:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--series", type=int, default=SERIES, help="that the noisy tenant sends")
    parser.add_argument("--kept", type=int, default=KEPT, help="of them, by its metric")
    parser.add_argument("--warm-s", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    minutes = 2 * options.rounds * (options.seconds + options.warm_s + AROUND_S) / 60
    sys.stderr.write(f"  about {minutes:.0f} minutes\n")
    rounds = []
    for number in range(options.rounds):
        rounds.append(round_of(options))
        sys.stderr.write(f"  round {number + 1}: {json.dumps(rounds[-1])}\n")
    figures = {"rounds": rounds, "bars": bars(rounds)}
    path = harness.write("tenants", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
