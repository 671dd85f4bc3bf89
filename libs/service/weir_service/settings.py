"""Settings: read once at start from the environment, frozen, handed down.

A field of a class with the prefix `WEIR_INGEST_` is the environment variable of that
prefix and its name in upper case. Secrets are files in a folder, never variables: the
environment of a process is seen by whoever may look at its host.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import structlog
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode
from weir.kafka import (
    CA,
    CERTIFICATE,
    KEY,
    PASSWORD,
    SECRETS,
    USER,
    Kafka,
    SaslMechanism,
    SecurityProtocol,
    has_sasl,
    has_tls,
    mechanism_fault,
    secret_faults,
)

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


class KafkaSettings(BaseSettings):
    """What every process is told that speaks to Kafka."""

    needed_secrets: ClassVar[tuple[str, ...]] = ()
    """Names of the files that must be in `secrets_dir`."""
    optional_secrets: ClassVar[tuple[str, ...]] = ()
    """Names of those that may be there, beside Kafka's."""

    kafka_bootstrap: str = Field(description="Brokers of the log, `host:port[,host:port]`.")
    kafka_security_protocol: SecurityProtocol = Field(
        default="PLAINTEXT", description="How the brokers are spoken to."
    )
    kafka_sasl_mechanism: SaslMechanism | None = Field(
        default=None,
        validate_default=True,
        description="How SASL proves the password; with the protocols SASL_PLAINTEXT and SASL_SSL.",
    )
    secrets_dir: Path | None = Field(
        default=None,
        validate_default=True,
        description="Folder of secrets, a file each: `redis_password` if Redis asks for one; for "
        "Kafka `kafka_user` and `kafka_password` (SASL), `kafka_ca` (TLS; without it the system's "
        "CAs), `kafka_certificate` and `kafka_key` (brokers that ask clients for one).",
    )

    @field_validator("kafka_sasl_mechanism")
    @classmethod
    def _mechanism_fits(
        cls, mechanism: SaslMechanism | None, info: ValidationInfo
    ) -> SaslMechanism | None:
        protocol = info.data.get("kafka_security_protocol")
        fault = mechanism_fault(protocol, mechanism) if protocol else None
        if fault is not None:
            raise ValueError(fault)
        return mechanism

    @field_validator("secrets_dir")
    @classmethod
    def _secrets_are_there(cls, folder: Path | None, info: ValidationInfo) -> Path | None:
        found, closed = _read_each(folder, (*cls.needed_secrets, *cls.optional_secrets, *SECRETS))
        faults = [
            f"must be a folder with a file {name} that is not empty, found none: {folder}"
            for name in cls.needed_secrets
            if not found[name] and name not in closed
        ]
        faults += closed.values()
        if protocol := info.data.get("kafka_security_protocol"):
            faults += secret_faults(protocol, found, closed) or _unusable(folder, found)
        if faults:
            raise ValueError("\n".join(faults))
        return folder

    @property
    def kafka(self) -> Kafka:
        """How Kafka is reached, with what the files of secrets say now."""
        return read_kafka(
            self.kafka_bootstrap,
            self.kafka_security_protocol,
            self.kafka_sasl_mechanism,
            self.secrets_dir,
        )


class ServiceSettings(KafkaSettings):
    """What every service is told from outside."""

    optional_secrets: ClassVar[tuple[str, ...]] = ("redis_password",)

    redis_url: str = Field(description="The store of panes, `redis://host:port/db`.")
    host: str = Field(default="127.0.0.1", description="Address that all ports bind to.")
    instance: str = Field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}",
        description="Name of this process in heartbeats and start records.",
    )

    def secret(self, name: str) -> str | None:
        """Return a secret without the white space around it; None if there is no such file.

        Raises:
            OSError: If its file cannot be read.
            UnicodeDecodeError: If it is no text.
        """
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
    """Return the text of a file in a folder of secrets; None if there is none.

    Raises:
        OSError: If it cannot be read.
        UnicodeDecodeError: If it is no text.
    """
    path = folder / name if folder is not None else None
    return path.read_text(encoding="utf-8").strip() if path is not None and path.is_file() else None


def try_secret(folder: Path | None, name: str) -> str:
    """Return the text of a file in a folder of secrets; empty if there is none.

    Raises:
        ValueError: If it cannot be read; names it, and says what to do.
    """
    try:
        return read_secret(folder, name) or ""
    except UnicodeDecodeError:
        msg = (
            f"must hold {name} as text in UTF-8, found other bytes; write it anew, a certificate"
            " or key in PEM instead of DER"
        )
    except OSError as error:
        msg = (
            f"must hold {name} as a file that this process may read, got {error.strerror};"
            " see whose it is and who may read it"
        )
    raise ValueError(msg)


def _read_each(folder: Path | None, names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of secrets, empty without one, and what is wrong with those unread."""
    found = dict.fromkeys(names, "")
    closed: dict[str, str] = {}
    for name in found:
        try:
            found[name] = try_secret(folder, name)
        except ValueError as fault:
            closed[name] = str(fault)
    return found, closed


def _unusable(folder: Path | None, found: Mapping[str, str]) -> list[str]:
    """Return which certificates and keys in a folder of secrets no client could use."""
    faults: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loads: dict[tuple[str, ...], Callable[[Path], None]] = {
        (CA,): lambda where: context.load_verify_locations(where / CA),
        (CERTIFICATE, KEY): lambda where: context.load_cert_chain(where / CERTIFICATE, where / KEY),
    }
    for names, load in loads.items():
        try:
            if folder is not None and all(found[name] for name in names):
                load(folder)
        except (ssl.SSLError, OSError) as error:
            what = CA if names == (CA,) else f"{CERTIFICATE} and {KEY}, which belong together"
            faults.append(f"must hold {what} as a client can use, got {error}; write it anew")
    return faults


def read_kafka(
    bootstrap: str,
    protocol: SecurityProtocol,
    mechanism: SaslMechanism | None,
    folder: Path | None,
) -> Kafka:
    """Return how Kafka is reached, with what the files in a folder of secrets say."""

    def file(name: str) -> str | None:
        there = has_tls(protocol) and read_secret(folder, name)
        return str(folder / name) if folder is not None and there else None

    return Kafka(
        bootstrap,
        protocol,
        mechanism,
        user=read_secret(folder, USER) if has_sasl(protocol) else None,
        password=read_secret(folder, PASSWORD) if has_sasl(protocol) else None,
        ca_file=file(CA),
        certificate_file=file(CERTIFICATE),
        key_file=file(KEY),
    )


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
            for why in fault["msg"].splitlines():
                log.error("bad_setting", name=name.rstrip("_"), why=why)
        return None
