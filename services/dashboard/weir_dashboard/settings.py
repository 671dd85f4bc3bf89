"""Settings of the dashboard, read once at start and handed down.

Every field is the environment variable `WEIR_DASHBOARD_` + its name in upper case.
All errors are reported at once.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Settings(BaseSettings):
    """What the dashboard is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_DASHBOARD_", frozen=True)

    kafka_bootstrap: str = Field(description="Brokers of the log, `host:port[,host:port]`.")
    redis_url: str = Field(description="The store of panes, `redis://host:port/db`.")
    secrets_dir: Path = Field(
        description="Folder of secrets: `hash_key`; `bootstrap_key` and `redis_password` if used."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8081, ge=1, le=65535, description="Port of API, socket and pages.")
    ops_port: int = Field(
        default=8083, ge=1, le=65535, description="Port of /livez, /readyz and /metrics."
    )
    web_dir: Path | None = Field(
        default=None, description="Folder of the built pages; without it only the API is served."
    )
    ingest_url: str = Field(
        default="http://localhost:8080", description="Address that clients send events to."
    )
    origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins that pages may come from, comma-separated; "
        "by default localhost and 127.0.0.1 at the port.",
    )
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats.",
    )
    session_hours: int = Field(
        default=168, ge=1, le=2160, description="How long a sign-in lasts, in hours."
    )
    cache_bytes: int = Field(
        default=256 * 2**20,
        ge=2**20,
        description="Most memory for decoded panes that are kept; the oldest used go first.",
    )
    query_bytes: int = Field(
        default=256 * 2**20,
        ge=2**20,
        description="Most memory for the panes of one query; what needs more is refused.",
    )
    max_sockets: int = Field(
        default=2_000, ge=1, description="Most live sockets of this process; more get 4429."
    )

    @field_validator("origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """Return the exact list of origins that a browser may come from."""
        local = (f"http://localhost:{self.port}", f"http://127.0.0.1:{self.port}")
        return self.origins or local

    def secret(self, name: str) -> str | None:
        """Return a secret's text without its line end, or None if there is no such file."""
        path = self.secrets_dir / name
        return path.read_text(encoding="utf-8").strip() if path.exists() else None
