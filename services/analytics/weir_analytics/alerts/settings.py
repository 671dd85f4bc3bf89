"""Settings of the alerts job: the environment variables `WEIR_ALERTS_<NAME>`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict
from weir_service.settings import Listed, Port, ServiceSettings


class Settings(ServiceSettings):
    """What the alerts job is told from outside; its secrets are also those of channels."""

    model_config = SettingsConfigDict(env_prefix="WEIR_ALERTS_", frozen=True)

    ops_port: Port = Field(default=8089, description="Port of /livez, /readyz and /metrics.")
    dashboard_url: str = Field(
        default="", description="Where people open the dashboard, for links in messages."
    )
    allowed_hosts: Listed = Field(
        default=(),
        description="Hosts, addresses or networks that channels may call although they are not "
        "public, comma-separated.",
    )
    cache_bytes: int = Field(
        default=64 * 2**20, ge=2**20, description="Most memory for decoded panes that are kept."
    )
    look_bytes: int = Field(
        default=256 * 2**20,
        ge=2**20,
        description="Most memory for the panes of one look; what needs more is refused.",
    )
    own_rules: bool = Field(
        default=True,
        description="Whether tenants that never had them get the rules on Weir itself.",
    )
