"""What dedup remembers of an hour of much traffic, made without the hour that it takes.

It is made by the engine's own code, batch by batch: each batch of each partition leaves a run,
which is merged with others and taken into sieves as the task of a batch does it. Identities are
random, as digests are, so that none is met again and each event is looked for in all of them. Each
batch covers one record, which stands before the events and is never read.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from weir.clock import SystemClock
from weir.names import LIVE_LANE
from weir_analytics.panes.mapped import Mapped
from weir_analytics.panes.runs import NEVER, Identities, Run, tidy, write_run
from weir_analytics.panes.shared_sieves import share
from weir_analytics.panes.states import log_folder
from workload import PARTITIONS

SEED = 7


@dataclass(frozen=True)
class Past:
    """What so many batches left.

    Attributes:
        folder: Where it is, in a folder for each partition.
        batches: How many there were.
        events: How many each had, in all partitions.
    """

    folder: Path
    batches: int
    events: int

    @classmethod
    def write(cls, folder: Path, batches: int, events: int, horizon_ms: int) -> Past:
        """Write it; all that it remembers was received now."""
        files, now_ms = Mapped(SystemClock()), SystemClock().now_ms()
        chance = np.random.default_rng(SEED)
        for partition in range(PARTITIONS):
            place = folder / str(partition)
            for number in range(batches):
                high, low = chance.integers(0, 2**64, (2, events // PARTITIONS), np.uint64)
                received = np.full(len(high), now_ms)
                before = now_ms if number else NEVER
                run = Run(
                    number, number + 1, before, now_ms, Identities(np.sort(high), low, received)
                )
                write_run(place, run, horizon_ms)
                share(place, tidy(place, number, horizon_ms, files), horizon_ms, files)
        return cls(folder, batches, events)

    @property
    def identities(self) -> int:
        """How many are remembered."""
        return self.batches * self.events

    @property
    def told(self) -> str:
        """What there is of it, in words."""
        runs, sieves = (len(list(self.folder.rglob(f"*.{kind}"))) for kind in ("run", "sieve"))
        return f"{self.identities:,} identities in {runs} runs, which share {sieves} sieves"

    def precede(self, bootstrap: str, topic: str) -> dict[int, int]:
        """Write the records that it covers; return where each partition goes on."""
        producer = Producer({"bootstrap.servers": bootstrap})
        for partition in range(PARTITIONS):
            for _ in range(self.batches):
                producer.produce(topic, b"", partition=partition)
            if left := producer.flush(60):
                msg = f"Kafka must take the records of the past within 60 s, {left} are left"
                raise SystemExit(msg)
        return dict.fromkeys(range(PARTITIONS), self.batches)

    def put(self, dedup_dir: Path, topic: str) -> None:
        """Put it where dedup looks for what it knows of a topic; no file is written twice."""
        place = log_folder(dedup_dir, topic, 0) / LIVE_LANE
        shutil.copytree(self.folder, place, copy_function=os.link)
