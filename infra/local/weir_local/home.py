"""The folder that holds a stack's state, and the ports it uses.

`WEIR_HOME` (default `.weir` in the checkout) and `WEIR_PORT_BASE` (default 8080)
choose them, so that two stacks run side by side. Everything in the folder may be
removed with `make reset`; nothing is kept anywhere else.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir_local.process import PartError
from weir_local.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT_BASE = 8080
# One letter or digit of 36, so the id of a key matches [a-z0-9]{8}.
ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class Ports:
    """Every port of a stack, each a fixed step above the base."""

    base: int

    @property
    def by_use(self) -> dict[str, int]:
        """Return the ports by what listens there."""
        uses = (
            "ingest",
            "dashboard",
            "ingest ops",
            "dashboard ops",
            "panes ops",
            "kafka",
            "kafka controller",
            "redis",
            "alerts ops",
        )
        return {use: self.base + step for step, use in enumerate(uses)}

    def __getitem__(self, use: str) -> int:
        return self.by_use[use]


@dataclass(frozen=True)
class Home:
    """A stack's folder.

    Attributes:
        folder: Where everything is.
        port_base: The first of its ports.
    """

    folder: Path
    port_base: int = DEFAULT_PORT_BASE

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, *, starting: bool = False
    ) -> Home:
        """Return the home that the settings name.

        A stack that runs already keeps the ports that it was started with, so that
        `status` and `down` find it without being told them again, or told others.

        Args:
            environment: Where the settings are.
            starting: Whether the ports asked for are going to be used.

        Raises:
            PartError: If `WEIR_PORT_BASE` is not a port that leaves room for the others, or
                at a start another one than that of the stack that runs.
        """
        folder = Path(environment.get("WEIR_HOME") or ROOT / ".weir").absolute()
        asked = environment.get("WEIR_PORT_BASE") or ""
        if asked and not (asked.isdecimal() and 1024 <= int(asked) <= 65_500):
            msg = f'WEIR_PORT_BASE must be a number from 1024 to 65500, got "{asked}"'
            raise PartError(msg)
        running = cls(folder).wanted().get("port_base")
        if starting and running and asked and int(asked) != running:
            msg = (
                f"the stack in {folder} runs on ports from {running}, asked for {asked}; "
                "run `make down` first, or set WEIR_HOME for a second stack"
            )
            raise PartError(msg)
        return cls(folder, running or int(asked or DEFAULT_PORT_BASE))

    @property
    def ports(self) -> Ports:
        """Return the ports of this stack."""
        return Ports(self.port_base)

    @property
    def run(self) -> Path:
        """Return the folder of the services' logs and pid files."""
        return self.folder / "run"

    @property
    def secrets(self) -> Path:
        """Return the folder of the secrets, one file each."""
        return self.folder / "secrets"

    @property
    def env_file(self) -> Path:
        """Return the file that tells scripts the addresses and the key."""
        return self.folder / "env"

    def prepare(self) -> None:
        """Make the folders and, the first time, the secrets; only their owner can read them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(exist_ok=True)
        self.secrets.mkdir(mode=0o700, exist_ok=True)
        _write_once(self.secrets / "hash_key", secrets.token_hex(32))
        key_id = "".join(secrets.choice(ID_ALPHABET) for _ in range(8))
        _write_once(self.secrets / "bootstrap_key", f"wk_{key_id}_{secrets.token_urlsafe(32)}")

    def api_key(self) -> str:
        """Return the key that may do everything, made at the first start."""
        return (self.secrets / "bootstrap_key").read_text()

    def write_env(self, addresses: Mapping[str, str]) -> None:
        """Write the file that scripts and tests source; mode 0600, it holds a key."""
        lines = "".join(f"{name}={value}\n" for name, value in addresses.items())
        _write_private(self.env_file, lines)

    def wanted(self) -> dict[str, Any]:
        """Return what should run: `port_base` and `parts`; empty while the stack is down."""
        try:
            wanted: dict[str, Any] = json.loads((self.folder / "run" / "wanted.json").read_text())
        except (OSError, ValueError):
            return {}
        return wanted

    def want(self, parts: list[str]) -> None:
        """Record what should run from now on; an empty list: nothing."""
        path = self.run / "wanted.json"
        if not parts:
            path.unlink(missing_ok=True)
            return
        partial = path.with_suffix(".new")
        partial.write_text(json.dumps({"port_base": self.port_base, "parts": parts}))
        partial.replace(path)


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        _write_private(path, text)


def _write_private(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)
