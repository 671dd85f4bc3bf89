"""Settings of ingest: the environment variables `WEIR_INGEST_<NAME>`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from pydantic_settings import SettingsConfigDict
from weir_service.settings import Port, ServiceSettings


class Settings(ServiceSettings):
    """What ingest is told from outside."""

    model_config = SettingsConfigDict(env_prefix="WEIR_INGEST_", frozen=True)
    needed_secrets = ("hash_key",)

    port: Port = Field(default=8080, description="Port for events.")
    ops_port: Port = Field(default=8082, description="Port for /livez, /readyz and /metrics.")
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
