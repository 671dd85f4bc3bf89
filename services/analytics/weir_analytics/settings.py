"""Settings of the panes job: the environment variables `WEIR_ANALYTICS_<NAME>`."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict
from weir_service.settings import Port, ServiceSettings

DAY_MS = 86_400_000


class Settings(ServiceSettings):
    """What the panes job is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_ANALYTICS_", frozen=True)

    state_dir: Path = Field(description="Folder of the checkpoint and of the dedup runs.")
    jars_dir: Path = Field(description="Folder of the four jars of Spark's Kafka connector.")
    master: str = Field(
        default="local[2,4]",
        description="Spark master; the 4 is tries of a task: with one, a killed worker stops all.",
    )
    driver_memory: str = Field(default="1g", description="Heap of the JVM.")
    shards: int = Field(default=1, ge=1, le=1024, description="Number of Redis shards.")
    reshard: bool = Field(
        default=False,
        description="Delete all panes and count the log again if SHARDS is not what it was.",
    )
    ops_port: Port = Field(default=8084, description="Port of /livez, /readyz and /metrics.")
    horizon_ms: int = Field(
        default=3_600_000,
        ge=1_000,
        le=30 * DAY_MS,
        description="Dedup horizon: the same identity within it counts once, in ms.",
    )
    beyond_ms: int = Field(
        default=400 * DAY_MS,
        ge=60_000,
        description="Events older than this when received are beyond-horizon, in ms.",
    )
    trigger_ms: int = Field(
        default=250, ge=0, le=10_000, description="Least time between two batches, in ms."
    )
    polling_ms: int = Field(
        default=50, ge=10, description="How often Spark asks for new offsets when idle, in ms."
    )
    max_records: int = Field(
        default=200_000, ge=1_000, description="Most records of one batch, about 2 s of peak rate."
    )
    small_batch: int = Field(
        default=20_000,
        ge=0,
        description="Batches up to this many records are read and counted by one task.",
    )
    tick_ms: int = Field(default=1_000, ge=100, description="Time between ticks, in ms.")
    stalled_ms: int = Field(
        default=10_000, ge=1_000, description="No batch for this long is reported, in ms."
    )

    @property
    def checkpoint_dir(self) -> Path:
        """Where Spark keeps its checkpoint."""
        return self.state_dir / "checkpoint"

    @property
    def dedup_dir(self) -> Path:
        """Where the dedup runs are kept: a cache of the log."""
        return self.state_dir / "dedup"

    @property
    def cores(self) -> int:
        """Return the number of cores that the master names, at least 1."""
        digits = self.master.removeprefix("local[").split(",")[0].rstrip("]")
        return int(digits) if digits.isdigit() else os.cpu_count() or 1
