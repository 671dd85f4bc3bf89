"""Every setting of ingest: read once at start, frozen, passed down, never imported."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """Settings of ingest, from environment variables `WEIR_INGEST_<NAME>`.

    Start-up fails with all errors at once. Secrets come from files in `secrets_dir`
    and are never in the environment or in a log.
    """

    model_config = SettingsConfigDict(env_prefix="WEIR_INGEST_", frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address that both ports bind to.")
    port: Port = Field(default=8080, description="Port for events.")
    ops_port: Port = Field(default=8082, description="Port for /livez, /readyz and /metrics.")
    kafka_bootstrap: str = Field(description="Brokers, host:port, comma-separated.")
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="Redis, for the live tail and the heartbeat.",
    )
    secrets_dir: Path = Field(
        description="Folder with the files `hash_key` and, if Redis asks for one, `redis_password`."
    )
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats.",
    )

    max_body_bytes: PositiveInt = Field(default=5 << 20, description="Largest body as sent, bytes.")
    max_decoded_bytes: PositiveInt = Field(
        default=20 << 20, description="Largest decoded body, bytes."
    )
    max_events: PositiveInt = Field(default=10_000, description="Most events of one request.")
    max_batch_events: PositiveInt = Field(default=1_000, description="Most of a CloudEvents batch.")
    max_in_flight_bytes: PositiveInt = Field(
        default=64 << 20,
        description="Most bytes of bodies held at once over all requests; one tenant gets half.",
    )
    max_queued_bytes: PositiveInt = Field(
        default=32 << 20, description="Most bytes that wait for Kafka's acknowledgement."
    )
    max_queued_records: PositiveInt = Field(
        default=100_000, description="Most records that wait for Kafka's acknowledgement."
    )
    max_connections_per_address: PositiveInt = Field(
        default=1_000, description="Most open connections of one peer address."
    )
    body_timeout_s: PositiveFloat = Field(
        default=10.0, description="Time for a request's head and for its body, seconds."
    )
    delivery_timeout_s: Annotated[float, Field(gt=0, le=4.5)] = Field(
        default=4.0, description="How long an answer waits for the acknowledgement, seconds."
    )
    linger_ms: Annotated[int, Field(ge=0, le=100)] = Field(
        default=5, description="How long a record waits for company, milliseconds."
    )
    quota_events_per_s: NonNegativeInt = Field(
        default=0,
        description="Events a second that a tenant may send to this process, averaged over 10 s; "
        "0: no quota.",
    )
    tail_events_per_s: PositiveInt = Field(
        default=50, description="Most events a second and tenant that the live tail samples."
    )

    @model_validator(mode="after")
    def _secrets_are_there(self) -> Settings:
        if not (self.secrets_dir / "hash_key").is_file():
            message = (
                f"secrets_dir must hold a file hash_key, found none in {self.secrets_dir}; "
                "write the installation's key there"
            )
            raise ValueError(message)
        return self

    @property
    def hash_key(self) -> SecretStr:
        """The installation's key for the hashes of API keys."""
        return SecretStr((self.secrets_dir / "hash_key").read_text().strip())

    @property
    def redis_password(self) -> SecretStr | None:
        """Redis's password, None if there is no such file."""
        path = self.secrets_dir / "redis_password"
        return SecretStr(path.read_text().strip()) if path.is_file() else None
