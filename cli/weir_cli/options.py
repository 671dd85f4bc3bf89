"""What commands have in common: how a service is reached, and which definition is meant."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from weir_cli import exits
from weir_cli.api import Api
from weir_cli.telling import complain

# What a header field may hold; an address and a key have no spaces either.
SENDABLE: Final = re.compile(r"[ -~]*")
_SPACELESS: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Place:
    """Which definition is meant.

    Attributes:
        kind: Its kind.
        name: Its name; empty for all of the kind, where a command takes that.
    """

    kind: str
    name: str

    @property
    def title(self) -> str:
        """Return kind and name as people write them."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class Service:
    """Whom a command speaks to.

    Attributes:
        title: What it is called.
        variable: The environment variable with its address.
        mend: Which address that is.
    """

    title: str
    variable: str
    mend: str


DASHBOARD: Final = Service(
    "the dashboard", "WEIR_DASHBOARD_URL", "give the address that a browser is given"
)
INGEST: Final = Service(
    "ingest", "WEIR_INGEST_URL", "give the address that events are sent to, without a path"
)


def add_command(
    commands: Any, name: str, *, says: str, about: str | None, service: Service = DASHBOARD
) -> Any:
    """Add a command to the parser, with the options that every command has.

    Args:
        commands: Where argparse keeps commands.
        name: Its word.
        says: One line for the list of commands.
        about: What stands above its options.
        service: Whom it speaks to; ingest is waited for by options of the command's own.
    """
    command = commands.add_parser(
        name,
        help=says,
        description=about,
        epilog=exits.EXPLAINED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = command.add_argument_group(service.title)
    group.add_argument(
        "--url",
        default=os.environ.get(service.variable),
        help=f"http://host:port; by default {service.variable}",
    )
    group.add_argument(
        "--key-file",
        metavar="FILE",
        type=Path,
        default=os.environ.get("WEIR_API_KEY_FILE") or None,
        help="file with an API key; by default the one that WEIR_API_KEY_FILE names, else the "
        "key in WEIR_API_KEY",
    )
    if service is DASHBOARD:
        group.add_argument(
            "--wait",
            metavar="SECONDS",
            type=float,
            default=0.0,
            help="how long to wait for a dashboard that does not answer yet; by default not at all",
        )
    command.add_argument(
        "--json", action="store_true", help="print JSON, one object a line, in place of words"
    )
    return command


def add_files(command: Any, *, required: bool = True) -> None:
    """Add `-f`."""
    command.add_argument(
        *("-f", "--file"),
        metavar="FILE|DIR",
        type=Path,
        action="extend",
        nargs="+",
        required=required,
        help="YAML or JSON of one or more definitions, a folder of such files, or - for standard "
        "input",
    )


def check_one_way(asked: argparse.Namespace) -> None:
    """Check that definitions are named by themselves or by files, if they are.

    Raises:
        UsageError: If both ways are taken.
    """
    if asked.file is not None and asked.definition is not None:
        msg = "definitions must be named as KIND/NAME or by files (-f), got both"
        raise exits.UsageError(msg)


def reached(asked: argparse.Namespace) -> Api:
    """Return the dashboard that the options name; nothing is sent yet.

    Raises:
        UsageError: If the address or the key cannot be used.
    """
    found = key(asked.key_file, os.environ)
    return Api(address(asked.url), found, wait_s=asked.wait, note=complain)


def address(url: str | None, service: Service = DASHBOARD) -> str:
    """Return the address of a service.

    Raises:
        UsageError: If it is none.
    """
    found = (url or "").strip()
    if found and not _SPACELESS.fullmatch(found):
        msg = (
            f"--url or {service.variable} must be http://host:port in ASCII, got {found!r}; write"
            " other signs percent-encoded, in a host as xn--"
        )
        raise exits.UsageError(msg)
    if not _is_address(found):
        msg = f'--url or {service.variable} must be http://host:port, got "{found}"; {service.mend}'
        raise exits.UsageError(msg)
    return found


def _is_address(text: str) -> bool:
    """Tell whether requests can be sent to an address."""
    try:
        parts = urlsplit(text)
        # A host is looked up so; one with an empty or a very long label cannot be.
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:  # an open bracket, a port that is no number
        return False


def key(file: Path | None, environment: Mapping[str, str]) -> str:
    """Return the API key of a file, else that of the environment.

    Raises:
        UsageError: If there is none, or one that cannot be sent; it is not repeated.
    """
    try:
        found = file.read_text() if file else environment.get("WEIR_API_KEY", "")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"--key-file must be a file with an API key: {error}"
        raise exits.UsageError(msg) from None
    found = found.strip()
    if not found:
        msg = "--key-file, WEIR_API_KEY_FILE or WEIR_API_KEY must give an API key, found none"
        raise exits.UsageError(msg)
    good = _SPACELESS.match(found)
    end = good.end() if good else 0
    if end < len(found):
        msg = (
            "--key-file, WEIR_API_KEY_FILE or WEIR_API_KEY must give an API key of ASCII signs"
            f" without spaces, got {len(found)} signs of which number {end + 1} is none; leave out"
            " all that is not the key, such as a comment"
        )
        raise exits.UsageError(msg)
    return found


def place(text: str) -> Place:
    """Return the definition that is written as `kind/name`.

    Raises:
        ArgumentTypeError: If it is not written so.
    """
    kind, _, name = text.partition("/")
    if not kind or not name or "/" in name:
        msg = f'a definition must be written as kind/name, such as metric/orders, got "{text}"'
        raise argparse.ArgumentTypeError(msg)
    return Place(kind, name)


def kind_or_place(text: str) -> Place:
    """Return the definition written as `kind/name`, or all of a kind.

    Raises:
        ArgumentTypeError: If it is neither.
    """
    return place(text) if "/" in text else Place(text, "")
