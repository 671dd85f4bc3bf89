"""P13: all panes counted again from the log, beside live counting of as many events.

The real panes job counts a log live, as fast as it can: events are written while it stands
still, and how soon they are counted then is its pace. Then Redis loses everything while the job
runs, and the time until ledger and metrics equal the recount again is that of the rebuild. Both
count the same events: before each round the log loses what it holds, as retention takes it, so
that a rebuild has no more to count than what was counted live just before. Rounds alternate, in
one life of the job. Between two losses lie ten seconds at least: a driver that loses its state
again sooner pauses before it begins anew, which is no part of a rebuild. Nor is the rest that a
rebuild leaves to live counting while events come: a loss comes some seconds after the last one.

Each size has a job, a broker and a Redis of its own. What an event costs is the CPU of the job
and of Redis, with all that they started, in the same time. A cost that grows with the size shows
beside that of the smallest.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import contest
import harness
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from contest import Spent
from job import END_S, Job, job
from shares import Estimates
from tree_cpu import TreeCpu
from weir import names
from weir.admission import Admitted
from weir.clock import SystemClock
from weir.commit import decode_mark
from weir_analytics.panes.between import LOST_SLICE_S
from weir_analytics.panes.driver import LASTING_S
from workload import (
    EVENT,
    PARTITIONS,
    Drawn,
    Truth,
    Wanted,
    check,
    draw,
    record_of,
    recount,
    wanted,
)

LONGEST_S = 900.0
# A driver learns with a batch that no event has come, and ticks bring one every second or two.
QUIET_S = LOST_SLICE_S + 2.0
NOTES = (
    "live: all events of a round stand in the log when counting begins; rebuild: the same events,"
    " from the moment Redis is emptied, so until the loss is met and a new epoch begins counts",
    f"Redis is emptied {QUIET_S:.0f} s after the last event was counted: until then it is not known"
    " that none comes, and slices leave half of the time to live counting",
    "ledger and all totals of each metric were compared with a recount after each of both",
)
# What is lost is days of a log; the last size is some twenty seconds of live counting.
SIZES = (400_000, 1_200_000, 3_600_000)


def records(events: Sequence[Drawn]) -> list[Admitted]:
    """Return events as ingest writes them, with times from now on."""
    now_ms = SystemClock().now_ms()
    return [record_of(one, now_ms + i // 10) for i, one in enumerate(events)]


def send(running: Job, made: Sequence[Admitted]) -> None:
    """Write records as fast as the broker takes them, to the partitions in turn."""
    producer = Producer(
        {"bootstrap.servers": running.broker.bootstrap, "linger.ms": 20, "enable.idempotence": True}
    )
    for i, one in enumerate(made):
        while True:
            try:
                producer.produce(names.EVENTS, one.value, one.key, i % PARTITIONS, headers=EVENT)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(END_S)


def forget(running: Job) -> None:
    """Take everything from the log that is counted, as retention does.

    No more than that: ticks come all the time, and a log without records that nobody has counted
    is one that the job refuses.
    """
    mark = decode_mark(running.redis.get(names.mark_key(0)))
    admin = AdminClient({"bootstrap.servers": running.broker.bootstrap})
    places = [TopicPartition(names.EVENTS, *counted) for counted in mark.end.items()]
    for done in admin.delete_records(places).values():
        done.result(END_S)


def watched(running: Job, events: int, work: Callable[[], None]) -> Spent:
    """Return what some work took, of the job and of Redis, with all that they started.

    That workers ended meanwhile is told, with what the job said: theirs is what was seen last.
    """
    cpu = TreeCpu([running.pid, running.server.part.pid() or 0])
    began_s = time.monotonic()
    work()
    took = Spent(events, time.monotonic() - began_s, cpu.stop())
    if cpu.ended:
        told = f"{cpu.ended} processes ended within {took.wall_s:.0f} s"
        sys.stderr.write(f"  {told}; the job said:\n{running.said()}\n")
    return took


def live(running: Job, events: Sequence[Drawn], before: int) -> Spent:
    """Return what counting some events took that were written while the job stood still.

    What it counted beside the writing would be half counted when that ends, and the rest too fast.

    Args:
        running: The job.
        events: What is counted.
        before: How many the ledger has already.
    """
    made, upto = records(events), before + len(events)
    with running.paused():
        send(running, made)
    return watched(running, len(events), lambda: running.await_accounted(upto, LONGEST_S))


def rebuilt(running: Job, total: int) -> Spent:
    """Return what a rebuild took, from the loss to the last event."""

    def work() -> None:
        running.redis.flushall()
        running.await_accounted(total, LONGEST_S)

    return watched(running, total, work)


def await_time(at_s: float) -> None:
    """Return at a time of the monotonic clock, in seconds; at once if it is over."""
    time.sleep(max(0.0, at_s - time.monotonic()))


def compare(
    running: Job, metrics: Sequence[Wanted], truths: Sequence[Truth], estimates: Estimates
) -> None:
    """End the benchmark if a total of a metric is not that of the recount."""
    vids = running.vids(metrics)
    said = [contest.totals(running.redis, one, vid) for one, vid in zip(metrics, vids, strict=True)]
    check("the rebuild", said, truths, metrics, estimates)


def measure(folder: Path, events: int, options: argparse.Namespace) -> dict[str, list[Spent]]:
    """Return what each round of one size took, live and rebuilt.

    Args:
        folder: Where everything goes.
        events: Of a round.
        options: The rest that is asked for.
    """
    metrics = wanted(options.metrics, sketches=True)
    # One round to warm up. Numbers go on, so that no event is one of a round before.
    rounds = options.rounds + 1
    drawing = draw(events * rounds, options.combinations)
    found: dict[str, list[Spent]] = {"live": [], "rebuild": []}
    estimates = Estimates()
    with job(folder, metrics) as running:
        running.await_serving(metrics, LONGEST_S)
        # Redis holds what the last rebuild has counted, and that is one round.
        held, truths, began_s = 0, recount([], metrics), time.monotonic()
        for _ in range(rounds):
            drawn = list(islice(drawing, events))
            await_time(began_s + LASTING_S)
            forget(running)
            found["live"].append(live(running, drawn, held))
            quiet_s = time.monotonic() + QUIET_S
            compare(running, metrics, recount(drawn, metrics, truths), estimates)
            held, truths = events, recount(drawn, metrics)
            await_time(quiet_s)
            found["rebuild"].append(rebuilt(running, held))
            began_s = time.monotonic()
            compare(running, metrics, truths, estimates)
    return {name: runs[1:] for name, runs in found.items()}


def costs(runs: Mapping[int, Mapping[str, Sequence[Spent]]]) -> dict[str, dict[str, Any]]:
    """Return pace and cost of an event, by size and way of counting.

    Args:
        runs: Of each size its rounds, the smallest first.
    """
    first: dict[str, float] = {}
    found: dict[str, dict[str, Any]] = {}
    for events, ways in runs.items():
        of_size = found[str(events)] = dict[str, Any]()
        for way, rounds in ways.items():
            pace = harness.median_of([one.events / one.wall_s for one in rounds], 0)
            cost = harness.median_of([1e6 * one.cpu_s / one.events for one in rounds], 2)
            of_size[way] = {
                "events_a_second": pace,
                "µs_an_event": cost,
                "of_the_smallest": round(cost["median"] / first.setdefault(way, cost["median"]), 3),
            }
    return found


def bar(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the bar, of the largest size, and beside it how little a short log gains.

    Args:
        found: What `costs` says.
    """
    gains = {
        int(events): ways["rebuild"]["events_a_second"]["median"]
        / ways["live"]["events_a_second"]["median"]
        for events, ways in found.items()
    }
    least, most = min(gains), max(gains)
    return {
        "id": "P13",
        "what": f"rebuild over live counting, events a second, both of the same {most:,} events, a"
        f" log that holds no more; of {least:,}, where the time until the first slice weighs more:"
        f" {gains[least]:.2f}",
        "reach": "≥ 1.5 (record 3)",
        "got": round(gains[most], 2),
    }


def asked(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--events", type=int, nargs="+", default=list(SIZES), help="of a round, by size"
    )
    parser.add_argument("--combinations", type=int, default=200, help="of the dimensions")
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(given)
    options.events.sort()
    return options


def main() -> None:
    """Measure and write the result."""
    options = asked()
    runs: dict[int, dict[str, list[Spent]]] = {}
    for events in options.events:
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
            runs[events] = measure(Path(name), events, options)
        for way, rounds in runs[events].items():
            per_cpu_s = sum(one.events for one in rounds) / sum(one.cpu_s for one in rounds)
            contest.tell(way, f"rounds of {events:,}", per_cpu_s)
    sizes = costs(runs)
    figures = {"sizes": sizes, "bars": [bar(sizes)], "notes": NOTES}
    sys.stdout.write(harness.write("rebuild", settings=vars(options), figures=figures).read_text())


if __name__ == "__main__":
    main()
