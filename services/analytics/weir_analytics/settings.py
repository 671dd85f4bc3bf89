"""Settings of the panes job: the environment variables `WEIR_ANALYTICS_<NAME>`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import SettingsConfigDict
from weir.definitions.budget import TENANT_BYTES
from weir_service.settings import Port, ServiceSettings, try_secret

DAY_MS = 86_400_000
PODS = "k8s://"
"""How the master begins whose executors are pods."""
SPARK_SECRET = "spark_secret"  # noqa: S105  the file's name
"""By which driver and executors that are pods know each other."""
# What must be told where executors are pods, and nowhere else.
OF_PODS = ("namespace", "driver_pod", "executor_image", "executor_prefix", "executor_template")


class Settings(ServiceSettings):
    """What the panes job is told from outside."""

    optional_secrets = (*ServiceSettings.optional_secrets, "hash_key")

    model_config = SettingsConfigDict(
        env_prefix="WEIR_ANALYTICS_", frozen=True, validate_default=True
    )

    state_dir: Path = Field(description="Folder of the checkpoint and of the dedup runs.")
    jars_dir: Path = Field(description="Folder of the four jars of Spark's Kafka connector.")
    master: str = Field(
        default="local[2,4]",
        description="Spark master; the 4 is tries of a task: with one, a killed worker stops all.",
    )
    driver_memory: str = Field(
        default="1g",
        pattern=r"^[1-9][0-9]*[kKmMgG]$",
        description="Heap of the JVM, such as 1g or 1536m.",
    )
    driver_address: str = Field(
        default="127.0.0.1", description="Address at which the driver waits for executors."
    )
    driver_name: str = Field(
        default="127.0.0.1", description="Name or address by which executors find the driver."
    )
    driver_port: Port = Field(
        default=0, description="Port at which executors report to the driver; 0: any."
    )
    blocks_port: Port = Field(
        default=0,
        description="Port of driver and executors for data of each other; 0: any.",
    )
    namespace: str = Field(default="", description="Where pods of executors are made.")
    driver_pod: str = Field(default="", description="Pod of the driver, with which executors go.")
    executor_image: str = Field(default="", description="Image of executors: that of the driver.")
    executor_pull_policy: str = Field(
        default="IfNotPresent", description="When the image of executors is pulled."
    )
    executor_prefix: str = Field(
        default="",
        # With seven characters for the driver's life, `-exec-` and ten digits: a label of 63.
        max_length=40,
        description="How names of executors' pods begin.",
    )
    executor_template: Path | None = Field(
        default=None, description="File with what every executor's pod has."
    )
    executor_instances: int = Field(
        default=2, ge=1, le=1000, description="Number of executors that are pods."
    )
    executor_cores: int = Field(
        default=2, ge=1, le=256, description="Tasks that an executor in a pod runs at once."
    )
    executor_cpu: str = Field(
        default="500m", description="Cores that an executor's pod asks for, as Kubernetes has it."
    )
    executor_memory: str = Field(default="1000m", description="Heap of an executor in a pod.")
    executor_overhead: str = Field(
        default="800m", description="Memory that an executor's pod may use beside the heap."
    )
    shards: int = Field(default=1, ge=1, le=1024, description="Number of Redis shards.")
    reshard: bool = Field(
        default=False,
        description="Delete all panes and count the log again if SHARDS is not what it was.",
    )
    redis_without_aof: bool = Field(
        default=False,
        description="Also count into a Redis that keeps no append-only file: what a restart of it "
        "loses is counted again from the log, and what is older than the log is gone.",
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
        default=200_000,
        ge=1_000,
        description="Most records of one batch, about 2 s of peak rate; of what is counted again"
        " while nobody sends, twice as many.",
    )
    small_batch: int = Field(
        default=20_000,
        ge=0,
        description="Batches up to this many records are read and counted by one task.",
    )
    columns: bool = Field(
        default=False,
        description="Count by Spark's columns: the same numbers for more CPU, but that what "
        "another producer forged, and only begins like an event, may count.",
    )
    tenant_bytes: int = Field(
        default=TENANT_BYTES,
        ge=0,
        description="Most memory of Redis for the panes of one tenant's metrics, as their checks "
        "estimate it; a version "
        "that exceeds it does not begin. The same as the dashboard's.",
    )
    tick_ms: int = Field(default=1_000, ge=100, description="Time between ticks, in ms.")
    audit_hours: int = Field(
        default=24,
        ge=0,
        le=720,
        description="Sampled panes, and minutes of the ledger, are recounted from the log every so "
        "many hours; 0: never.",
    )
    audit_days: int = Field(
        default=400,
        ge=1,
        le=400,
        description="How far back that goes, in days, as far as the log holds all of a pane, and "
        "AUDIT_RECORDS allow. Half of the sample is of the last day.",
    )
    audit_records: int = Field(
        default=200_000_000,
        ge=1_000,
        description="How many records of the log, of all tenants, such an audit reads at most, "
        "twice each, from 23 hours and HORIZON_MS before the oldest pane on; the default is some "
        "three hours' work beside live counting. Where more come in that time no pane is "
        "compared, only the ledger.",
    )
    audit_sample: int = Field(
        default=40,
        ge=2,
        le=1_000,
        description="How many instants that draws; the pane of each resolution that holds one is "
        "recounted, and the minute of the ledger.",
    )
    erase_hours: int = Field(
        default=24,
        ge=0,
        le=168,
        description="A tenant's metrics are counted again for erasures at most every so many "
        "hours, for all that came meanwhile at once; 0: for each by itself.",
    )
    stalled_ms: int = Field(
        default=10_000, ge=1_000, description="No batch for this long is reported, in ms."
    )

    @field_validator(*OF_PODS, mode="after")
    @classmethod
    def _told_where_executors_are_pods(
        cls, value: str | Path | None, told: ValidationInfo
    ) -> str | Path | None:
        if not value and _in_pods(told.data):
            msg = f"must be set while master is {told.data['master']}, got nothing"
            raise ValueError(msg)
        return value

    @field_validator("executor_template")
    @classmethod
    def _template_is_there(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_file():
            msg = f"must be the file of a pod, found none: {path}"
            raise ValueError(msg)
        return path

    @field_validator("driver_port")
    @classmethod
    def _port_is_guarded(cls, port: int, told: ValidationInfo) -> int:
        folder = told.data.get("secrets_dir")
        if _in_pods(told.data) and not try_secret(folder, SPARK_SECRET):
            msg = (
                "must be for executors only that know the same secret; secrets_dir must be a"
                f" folder with a file {SPARK_SECRET} that is not empty, found none: {folder}"
            )
            raise ValueError(msg)
        return port

    @property
    def in_pods(self) -> bool:
        """Return whether executors are pods that the driver makes."""
        return self.master.startswith(PODS)

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
        """Return how many tasks can run at once, at least 1."""
        if self.in_pods:
            return self.executor_instances * self.executor_cores
        if found := re.match(r"local-cluster\[ *(\d+) *, *(\d+)", self.master):
            return int(found[1]) * int(found[2])
        found = re.match(r"local\[ *(\d+)", self.master)
        return int(found[1]) if found else os.cpu_count() or 1


def _in_pods(told: Mapping[str, object]) -> bool:
    return str(told.get("master", "")).startswith(PODS)
