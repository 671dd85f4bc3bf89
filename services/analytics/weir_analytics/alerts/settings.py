"""Settings of the alerts job, read once at start and handed down.

Every field is the environment variable `WEIR_ALERTS_` + its name in upper case. All
errors are reported at once.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Settings(BaseSettings):
    """What the alerts job is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_ALERTS_", frozen=True)

    kafka_bootstrap: str = Field(description="Brokers of the log, `host:port[,host:port]`.")
    redis_url: str = Field(description="The store of panes, `redis://host:port/db`.")
    secrets_dir: Path = Field(
        description="Folder of secrets: those that channels name, and `redis_password` if used."
    )
    host: str = Field(default="127.0.0.1", description="Address of the ops port.")
    ops_port: int = Field(
        default=8089, ge=0, le=65535, description="Port of /livez, /readyz and /metrics."
    )
    dashboard_url: str = Field(
        default="", description="Where people open the dashboard, for links in messages."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Hosts, addresses or networks that webhooks may call although they are not "
        "public, comma-separated.",
    )
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats and start records.",
    )
    cache_bytes: int = Field(
        default=64 * 2**20, ge=2**20, description="Most memory for decoded panes that are kept."
    )
    look_bytes: int = Field(
        default=256 * 2**20,
        ge=2**20,
        description="Most memory for the panes of one look; what needs more is refused.",
    )

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    def secret(self, name: str) -> str | None:
        """Return a secret's text without its line end, or None if there is no such file."""
        path = self.secrets_dir / name
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None
