"""What dedup remembers of a long horizon, made without the hour that it takes to come about.

At 20,000 events/s an hour is 72 million identities, which dedup keeps in 69 runs of the largest
size in each of four partitions. Such runs are written and tidied here by the engine's own code.
Their identities are random, as digests are, so that none is met again and each event is looked for
in all of them. Each run covers one record, which stands before the events and is never read.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from weir.names import LIVE_LANE
from weir_analytics.panes.runs import LARGEST, NEVER, Identities, Run, tidy, write_run
from weir_analytics.panes.states import log_folder
from workload import PARTITIONS

SEED = 7


@dataclass(frozen=True)
class Past:
    """Runs of the largest size, as many for each partition.

    Attributes:
        folder: Where they are, in a folder for each partition.
        runs: How many for each.
    """

    folder: Path
    runs: int

    @classmethod
    def write(cls, folder: Path, runs: int, horizon_ms: int) -> Past:
        """Write the runs; what they remember was received now."""
        chance, now_ms = np.random.default_rng(SEED), time.time_ns() // 1_000_000
        received = np.full(LARGEST, now_ms)
        for partition in range(PARTITIONS):
            for number in range(runs):
                high, low = chance.integers(0, 2**64, (2, LARGEST), np.uint64)
                identities = Identities(np.sort(high), low, received)
                before = now_ms if number else NEVER
                run = Run(number, number + 1, before, now_ms, identities)
                write_run(folder / str(partition), run, horizon_ms)
                tidy(folder / str(partition), number + 1, horizon_ms)
        return cls(folder, runs)

    @property
    def told(self) -> str:
        """What dedup remembers, in words."""
        return f"{PARTITIONS * self.runs * LARGEST:,} identities in {self.runs} runs a partition"

    def precede(self, bootstrap: str, topic: str) -> dict[int, int]:
        """Write the records that the runs cover; return where each partition goes on."""
        producer = Producer({"bootstrap.servers": bootstrap})
        for partition in range(PARTITIONS):
            for _ in range(self.runs):
                producer.produce(topic, b"", partition=partition)
        producer.flush(60)
        return dict.fromkeys(range(PARTITIONS), self.runs)

    def put(self, dedup_dir: Path, topic: str) -> None:
        """Put the runs where dedup looks for those of a topic; a run is never written twice."""
        shutil.copytree(
            self.folder, log_folder(dedup_dir, topic, 0) / LIVE_LANE, copy_function=os.link
        )
