"""Settings of the analytics service, read once at start and handed down.

Every field is the environment variable `WEIR_ANALYTICS_` + its name in upper
case. All errors are reported at once.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DAY_MS = 86_400_000


def read_password(secrets_dir: Path | None) -> str | None:
    """Return the content of `redis_password` in a folder; None if there is none."""
    path = secrets_dir / "redis_password" if secrets_dir is not None else None
    return path.read_text().strip() if path is not None and path.is_file() else None


class Settings(BaseSettings):
    """What the panes job is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_ANALYTICS_", frozen=True)

    kafka_bootstrap: str = Field(description="Brokers of the log, `host:port[,host:port]`.")
    redis_url: str = Field(description="The store of panes, `redis://host:port/db`.")
    state_dir: Path = Field(description="Folder of the checkpoint and of the dedup runs.")
    jars_dir: Path = Field(description="Folder of the four jars of Spark's Kafka connector.")
    secrets_dir: Path | None = Field(
        default=None,
        description="Folder of secrets with the file `redis_password`, if Redis asks for one.",
    )
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
    host: str = Field(default="127.0.0.1", description="Address of the ops port.")
    ops_port: int = Field(default=8084, ge=0, le=65535, description="Port of /livez and /metrics.")
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats and start records.",
    )
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
    def redis_password(self) -> str | None:
        """Redis's password; None if there is no such file."""
        return read_password(self.secrets_dir)

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
