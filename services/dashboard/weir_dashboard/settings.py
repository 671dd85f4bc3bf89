"""Settings of the dashboard: the environment variables `WEIR_DASHBOARD_<NAME>`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import SettingsConfigDict
from weir.definitions.budget import TENANT_BYTES
from weir_service.settings import Listed, Port, ServiceSettings, try_secret

from weir_dashboard.auth.callers import key_id_of


class Settings(ServiceSettings):
    """What the dashboard is told from outside; its secret `bootstrap_key` is the first API key."""

    model_config = SettingsConfigDict(env_prefix="WEIR_DASHBOARD_", frozen=True)
    needed_secrets = ("hash_key",)
    optional_secrets = (*ServiceSettings.optional_secrets, "bootstrap_key")

    port: Port = Field(default=8081, description="Port of API, socket and pages.")
    ops_port: Port = Field(default=8083, description="Port of /livez, /readyz and /metrics.")
    web_dir: Path | None = Field(
        default=None, description="Folder of the built pages; without it only the API is served."
    )
    ingest_url: str = Field(
        default="http://localhost:8080", description="Address that clients send events to."
    )
    origins: Listed = Field(
        default=(),
        description="Origins that pages may come from, comma-separated; "
        "by default localhost and 127.0.0.1 at the port.",
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
    tenant_bytes: int = Field(
        default=TENANT_BYTES,
        ge=0,
        description="Most memory of Redis for the panes of one tenant's metrics, as their checks "
        "estimate it; a metric that exceeds it is refused.",
    )
    changes_per_hour: int = Field(
        default=1_000,
        ge=0,
        description="Changes an hour that a tenant may make through this process, as many at "
        "once; a long one counts for each 4,096 bytes; 0: no quota.",
    )
    max_sockets: int = Field(
        default=2_000, ge=1, description="Most live sockets of this process; more get 4429."
    )

    @field_validator("secrets_dir")
    @classmethod
    def _first_key_is_one(cls, folder: Path | None) -> Path | None:
        if key := try_secret(folder, "bootstrap_key"):
            key_id_of(key)
        return folder

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """Return the exact list of origins that a browser may come from."""
        local = (f"http://localhost:{self.port}", f"http://127.0.0.1:{self.port}")
        return self.origins or local
