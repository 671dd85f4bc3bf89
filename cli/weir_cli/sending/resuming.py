"""How far an input is confirmed, in a file: what is before that is never sent again.

The file is written anew after each batch that ingest has answered, in one step, so that it is
whole at any instant. What is behind the place that it keeps may have been sent, too: it is sent
again, with the same ids.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from weir_cli.exits import UsageError
from weir_cli.sending.entries import Point
from weir_cli.sending.inputs import Span

VERSION: Final = 1
HEAD_BYTES: Final = 4_096
HORIZON_MS: Final = 3_600_000
"""The dedup horizon that an installation has unless it is set otherwise (docs/settings.md)."""


@dataclass(frozen=True)
class Print:
    """Some bytes of an input, so that they are known again.

    Attributes:
        start: Offset of the first.
        length: How many.
        sha256: Their digest, in hex.
    """

    start: int = 0
    length: int = 0
    sha256: str = ""

    @classmethod
    def of(cls, start: int, raw: bytes) -> Print:
        """Return the print of bytes that stand somewhere."""
        return cls(start, len(raw), hashlib.sha256(raw).hexdigest())

    def is_of(self, raw: bytes) -> bool:
        """Tell whether these are the bytes."""
        return not self.length or Print.of(self.start, raw) == self

    @property
    def span(self) -> Span:
        """Where the bytes stand."""
        return Span(self.start, self.length)


@dataclass(frozen=True)
class Totals:
    """What became of the entries that are confirmed, over all runs.

    Attributes:
        accepted: Events that ingest stored.
        quarantined: Those that it stored as unusable.
        refused: Those that it did not take.
        not_understood: Entries that were no events, and were not sent.
        position: Up to where the log has them, as ingest says it.
    """

    accepted: int = 0
    quarantined: int = 0
    refused: int = 0
    not_understood: int = 0
    position: str = ""


@dataclass(frozen=True)
class State:
    """What is known of an input that was sent, in part at least.

    Attributes:
        name: What the input is called.
        url: Where it goes.
        key: The public part of the key; empty if unknown.
        format: How it is read.
        at: Up to where everything is confirmed.
        head: How the input begins.
        last: The last entry that is confirmed.
        tried_at_ms: Since when what is behind may have been sent; None: nothing of it was.
        totals: What became of what is confirmed.
    """

    name: str
    url: str
    key: str
    format: str
    at: Point
    head: Print = Print()
    last: Print = Print()
    tried_at_ms: int | None = None
    totals: Totals = field(default_factory=Totals)

    def text(self) -> str:
        """Return it as the file has it."""
        return json.dumps({"v": VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, text: str) -> State:
        """Return what a file has.

        Raises:
            ValueError: If that is nothing of ours, or of another release.
        """
        try:
            said: Mapping[str, Any] = json.loads(text)
            if said["v"] != VERSION:
                raise ValueError
            members = {name: value for name, value in said.items() if name != "v"}
            for name, kind in (("at", Point), ("head", Print), ("last", Print), ("totals", Totals)):
                members[name] = kind(**members[name])
            return cls(**members)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError from error


class StateFile:
    """The file with the state of one input; a second `weir send` of it is refused meanwhile."""

    def __init__(self, path: Path) -> None:
        """Lock the file; its folder is made.

        Raises:
            UsageError: If it cannot be written, or another one has it.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(_beside(path, ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            msg = (
                f"{path} must belong to one `weir send` at a time, got a second; wait for the first"
            )
            raise UsageError(msg) from None

    def load(self) -> State | None:
        """Return what it has; None if there is none.

        Raises:
            UsageError: If it cannot be read.
        """
        try:
            return State.read(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it has something else"
            msg = (
                f"{self.path} must be a resume file of this release: {why}; name another with"
                " --state, or delete it to send from the start"
            )
            raise UsageError(msg) from None

    def save(self, state: State) -> None:
        """Write the file anew, in one step.

        Raises:
            OSError: If it cannot be written; the one before stands.
        """
        new = _beside(self.path, ".new")
        with new.open("w", encoding="utf-8") as file:
            file.write(state.text())
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)


def usual_path(name: str, url: str, environment: Mapping[str, str]) -> Path:
    """Return where the state of an input is kept: one file for each input and installation.

    Raises:
        UsageError: If there is no home to keep it in.
    """
    try:
        base = Path(environment.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
    except RuntimeError:
        msg = "a resume file must have a home, found none; set XDG_STATE_HOME, or give --state"
        raise UsageError(msg) from None
    digest = hashlib.sha256(f"{url}\n{name}".encode("utf-8", "surrogateescape")).hexdigest()
    return base / "weir" / f"send-{digest[:16]}.json"


def saved_first(file: StateFile, state: State) -> None:
    """Write the file before anything is sent, so that a full disk is met now.

    Raises:
        UsageError: If it cannot be written.
    """
    try:
        file.save(state)
    except OSError as error:
        raise _unwritable(file.path, error) from None


def check_same(label: str, now: State, before: State, *, same_tenant: bool) -> None:
    """Check that a resume file is about what is to be sent.

    Args:
        label: What people call the input.
        now: What is to be sent.
        before: What the file says.
        same_tenant: Another key is one of the same tenant.

    Raises:
        UsageError: If it is about something else.
    """
    for what, of_now, of_before in (
        ("the input", now.name, before.name),
        ("the address", now.url, before.url),
        ("the format", now.format, before.format),
    ):
        if of_now != of_before:
            msg = (
                f"{label}: {what} must be that of the resume file, {of_before!r}, got {of_now!r};"
                " --restart sends from the start, --state names another file"
            )
            raise UsageError(msg)
    if now.key and before.key and now.key != before.key and not same_tenant:
        msg = (
            f"{label}: the key must be that of the resume file, {before.key!r}, got {now.key!r};"
            " --same-tenant goes on if it is one of the same tenant, --state names a file for"
            " another"
        )
        raise UsageError(msg)


def check_known(label: str, state: State, found: list[bytes]) -> None:
    """Check that an input holds what was sent of it.

    Args:
        label: What people call the input.
        state: What is known of it.
        found: What it holds at the spans of `spans_of`.

    Raises:
        UsageError: If it is another one, or shorter.
    """
    head, last, before = found
    offset = state.at.offset
    if state.head.is_of(head) and state.last.is_of(last) and len(before) == (offset > 0):
        return
    msg = (
        f"{label} must be the input of which {offset:,} bytes were sent, got another one or less of"
        " it; --restart sends it from the start, --name gives it a name of its own"
    )
    raise UsageError(msg)


def spans_of(state: State) -> tuple[Span, ...]:
    """Return what is to be read of an input to know it again."""
    offset = state.at.offset
    return state.head.span, state.last.span, Span(max(0, offset - 1), min(1, offset))


def sent_too_long_ago(state: State, now_ms: int) -> bool:
    """Tell whether what is behind the place may have been stored, and is no longer known again."""
    return state.tried_at_ms is not None and now_ms - state.tried_at_ms > HORIZON_MS


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _unwritable(path: Path, error: OSError) -> UsageError:
    msg = (
        f"{path} must be a resume file that can be written: {error.strerror}; name another with"
        " --state, or send without one (--no-state)"
    )
    return UsageError(msg)
