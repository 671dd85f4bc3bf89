"""Settings: read once at start from the environment, frozen, handed down.

A field of a class with the prefix `WEIR_INGEST_` is the environment variable of that
prefix and its name in upper case. Secrets are files in a folder, never variables: the
environment of a process is seen by whoever may look at its host.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import structlog
from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode

EXIT_SETTINGS = 2
"""What a process ends with when its settings cannot be used."""

log = structlog.get_logger()


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""A setting of several texts, comma-separated."""

Port = Annotated[int, Field(ge=0, le=65535)]
"""A port to listen on; 0 is any that is free."""


class ServiceSettings(BaseSettings):
    """What every process is told from outside."""

    needed_secrets: ClassVar[tuple[str, ...]] = ()
    """Names of the files that must be in `secrets_dir`."""

    kafka_bootstrap: str = Field(description="Brokers of the log, `host:port[,host:port]`.")
    redis_url: str = Field(description="The store of panes, `redis://host:port/db`.")
    secrets_dir: Path | None = Field(
        default=None,
        validate_default=True,
        description="Folder of secrets, a file each; `redis_password` if Redis asks for one.",
    )
    host: str = Field(default="127.0.0.1", description="Address that all ports bind to.")
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats and start records.",
    )

    @field_validator("secrets_dir")
    @classmethod
    def _secrets_are_there(cls, folder: Path | None) -> Path | None:
        for name in cls.needed_secrets:
            if not read_secret(folder, name):
                msg = f"must be a folder with a file {name} that is not empty, found none: {folder}"
                raise ValueError(msg)
        return folder

    def secret(self, name: str) -> str | None:
        """Return a secret without the white space around it; None if there is no such file."""
        return read_secret(self.secrets_dir, name)

    @property
    def hash_key(self) -> bytes:
        """The installation's key for the hashes of API keys; empty where it is not needed."""
        return (self.secret("hash_key") or "").encode()

    @property
    def redis_password(self) -> str | None:
        """Redis's password; None if it asks for none."""
        return self.secret("redis_password")

    def told(self) -> dict[str, Any]:
        """Return the settings for the log, with the credentials of addresses hidden."""
        shown = self.model_dump(mode="json")
        return {**shown, "redis_url": re.sub(r"//[^@/]*@", "//***@", self.redis_url)}


def read_secret(folder: Path | None, name: str) -> str | None:
    """Return the text of a file in a folder of secrets; None if there is none."""
    path = folder / name if folder is not None else None
    return path.read_text(encoding="utf-8").strip() if path is not None and path.is_file() else None


S = TypeVar("S", bound=ServiceSettings)


def read(kind: type[S]) -> S | None:
    """Return the settings that the environment holds; None if some cannot be used.

    All that is wrong is logged at once, each by the name of its variable.
    """
    try:
        return kind()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        for fault in error.errors():
            name = f"{prefix}{'_'.join(str(part) for part in fault['loc'])}".upper()
            log.error("bad_setting", name=name.rstrip("_"), why=fault["msg"])
        return None
