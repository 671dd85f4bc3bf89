"""What the command line asks for: every input is opened and checked before one is sent."""

from __future__ import annotations

import argparse
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from weir_cli.exits import UsageError
from weir_cli.files import STDIN
from weir_cli.sending.batching import MOST_EVENTS
from weir_cli.sending.entries import Point
from weir_cli.sending.fields import Shape
from weir_cli.sending.guessing import Chosen, Format, read_as
from weir_cli.sending.inputs import Input, InputBrokenError
from weir_cli.sending.resuming import (
    State,
    StateFile,
    check_known,
    check_same,
    saved_first,
    sent_too_long_ago,
    spans_of,
    usual_path,
)
from weir_cli.sending.sender import Job, Limits

_MOST_SIGNS: Final = 512
# Its first part may be told to anybody.
_KEY: Final = re.compile(r"wk_([a-z0-9]{8})_")


@dataclass(frozen=True)
class Target:
    """Where events go.

    Attributes:
        url: Address of ingest.
        key: The key.
    """

    url: str
    key: str

    @property
    def key_name(self) -> str:
        """The part of the key that is no secret; empty for a key of another form."""
        found = _KEY.match(self.key)
        return found[1] if found else ""


@dataclass(frozen=True)
class Opened:
    """An input that is open.

    Attributes:
        source: The input.
        form: How it is read.
        first: Where its entries begin.
        name: What it is called.
        is_kept: It is a file with a name of its own, which a later run finds again.
    """

    source: Input
    form: Format
    first: Point
    name: str
    is_kept: bool


def limits_of(asked: argparse.Namespace) -> Limits:
    """Return how fast and how long to send.

    Raises:
        UsageError: If a number cannot be meant.
    """
    if asked.rate is not None and not 0 < asked.rate < float("inf"):
        msg = f"--rate must be more than 0 events a second, got {asked.rate:g}"
        raise UsageError(msg)
    if not 1 <= asked.batch <= MOST_EVENTS:
        msg = f"--batch must be between 1 and {MOST_EVENTS}, got {asked.batch}"
        raise UsageError(msg)
    if not 0 <= asked.give_up < float("inf"):
        msg = f"--give-up must be 0 or more seconds, got {asked.give_up:g}"
        raise UsageError(msg)
    return Limits(asked.rate, asked.batch, asked.give_up)


def check_together(asked: argparse.Namespace) -> None:
    """Check that options go together.

    Raises:
        UsageError: If they do not.
    """
    several = len(asked.file) > 1
    for option, value in (("--name", asked.name), ("--state", asked.state)):
        if value is not None and several:
            msg = f"{option} must come with one input, got {len(asked.file)}; send them one by one"
            raise UsageError(msg)
    if asked.state is not None and asked.no_state:
        msg = "--state and --no-state exclude each other, got both"
        raise UsageError(msg)
    if asked.state is not None and asked.file == [STDIN] and asked.name is None:
        msg = "--state must come with --name for standard input, which has no name of its own"
        raise UsageError(msg)
    for option, text in (
        ("--type", asked.type),
        ("--source", asked.source),
        ("--name", asked.name),
    ):
        if text is not None and not (0 < len(text) <= _MOST_SIGNS and text.isprintable()):
            msg = f"{option} must be 1 to {_MOST_SIGNS} printable signs, got {text!r}"
            raise UsageError(msg)


def opened(path: Path, asked: argparse.Namespace) -> Opened:
    """Open an input.

    Raises:
        UsageError: If it cannot be read as it is asked.
    """
    source = Input(path)
    is_kept = source.is_file and path != STDIN
    shape = Shape(
        name=asked.name or (str(path.resolve()) if is_kept else secrets.token_hex(16)),
        source=asked.source or "",
        type=asked.type or "",
        id=asked.id or "",
        time=asked.time or "",
        subject=asked.subject or "",
        texts=frozenset(asked.text or ()),
    )
    chosen = Chosen(asked.format or "", asked.pattern or "", asked.delimiter or "")
    form, first = read_as(source.beginning, chosen, shape)
    return Opened(source, form, first, shape.name, is_kept)


def jobs_of(asked: argparse.Namespace, target: Target, now_ms: int, held: ExitStack) -> list[Job]:
    """Return what is to be sent, each input at the place from which on it is.

    Args:
        asked: The command line.
        target: Where it goes.
        now_ms: Now.
        held: Closes what is opened here.

    Raises:
        UsageError: If an input, a format or a resume file cannot be used.
    """
    jobs, names = list[Job](), set[str]()
    for path in asked.file:
        one = opened(path, asked)
        held.callback(one.source.close)
        if one.name in names:
            msg = f"each input must be named once, got {one.source.label} twice"
            raise UsageError(msg)
        names.add(one.name)
        now = State(one.name, target.url, target.key_name, one.form.word, one.first)
        file = _file(one, now, asked)
        if file is not None:
            held.callback(file.close)
        now = replace(now, tried_at_ms=now_ms)
        jobs.append(_placed(Job(one.source, one.form, now, file), asked))
    return jobs


def notes_on(job: Job, asked: argparse.Namespace, now_ms: int) -> Iterator[str]:
    """Yield what is to be known before an input is sent."""
    label, offset = job.source.label, job.state.at.offset
    if asked.format is None:
        yield f"{label} is read as {job.form.told()}; --format says otherwise"
    if job.is_resumed:
        yield f"{label} goes on behind byte {offset:,}: what is before it is confirmed"
    if sent_too_long_ago(job.state, now_ms):
        yield (
            f"{label}: what is behind byte {offset:,} may have been sent more than an hour ago, the"
            " usual dedup horizon; it is sent again, and what was stored then counts twice"
        )
    if job.file is None and asked.name is None and not asked.no_state:
        yield f"{label} has no --name: sent again by another run, it counts again"


def _placed(job: Job, asked: argparse.Namespace) -> Job:
    """Return a job whose input stands where it goes on."""
    label, now, is_open = job.source.label, job.state, False
    before = None if job.file is None or asked.restart else job.file.load()
    if before is not None:
        check_same(label, now, before, same_tenant=asked.same_tenant)
        is_open = before.tried_at_ms is not None
        # Of what may have been sent the first time counts.
        since_ms = before.tried_at_ms if is_open else now.tried_at_ms
        now = replace(before, key=now.key, tried_at_ms=since_ms)
    try:
        found = job.source.at(now.at.offset, spans_of(now))
    except InputBrokenError as error:
        raise UsageError(str(error)) from None
    if before is not None:
        check_known(label, now, found)
    if job.file is not None:
        saved_first(job.file, now)
    is_resumed = before is not None and before.head.length > 0
    return replace(job, state=now, is_resumed=is_resumed, is_open=is_open)


def _file(one: Opened, now: State, asked: argparse.Namespace) -> StateFile | None:
    """Return the resume file of an input, locked: what flows has one only if it is asked for."""
    if asked.state is not None:
        return StateFile(asked.state)
    if asked.no_state or not one.is_kept:
        return None
    return StateFile(usual_path(now.name, now.url, os.environ))
