"""Messages by Apprise: what is said, and the process that says it.

Apprise knows a title, a body and four types. The `dedup_key` goes to the services that
incidents.py names; another one that opens incidents opens one a message.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Final

import msgspec
from weir.alerts.records import Notification, dedup_key

from weir_analytics.alerts.channels.answer import NOT_ALLOWED, Answer
from weir_analytics.alerts.channels.apprise_request import Outcome, Request

TIMEOUT_S: Final = 20.0
_PROCESS: Final = "weir_analytics.alerts.channels.apprise_process"
_MENTIONS: Final = re.compile(r"@(?=everyone|here|channel|all|room)|<(?=[!@#])", re.IGNORECASE)
_OVER: Final = ("resolved", "withdrawn", "ended")
_TYPES: Final = {"critical": "failure", "high": "failure", "low": "warning", "info": "info"}


def type_of(note: Notification) -> str:
    """Return Apprise's type of a message: by its severity, while it is bad news."""
    if note.kind in _OVER:
        return "success"
    if note.kind in ("test", "heartbeat"):
        return "info"
    return "warning" if note.kind == "no_data" else _TYPES.get(note.severity, "failure")


def body_of(note: Notification) -> str:
    """Return the lines below the title: text, labels, links."""
    labels = ", ".join(f"{name}: {value}" for name, value in note.labels.items())
    links = [f"{name.capitalize()}: {link}" for name, link in note.links.items()]
    lines = [note.text, f"Severity: {note.severity}" if note.severity else "", labels, *links]
    return "\n".join(line for line in lines if line) or note.title


def plain(text: str) -> str:
    """Return a text that mentions nobody: values of events are in it, and those anybody sends."""
    return _MENTIONS.sub(lambda found: found[0] + "\u200b", text)


def key_of(note: Notification) -> str:
    """Return what services that keep incidents know an alert by.

    No message says that there is data again, so nothing closes what `no_data` opens. Its key
    is the series', not that of one spell: while it is open it is not opened again.
    """
    if note.kind != "no_data":
        return note.dedup_key
    series = msgspec.json.encode([note.rule, sorted(note.labels.items())]).decode()
    return dedup_key(note.tenant, 0, series, 0)


async def call(url: str, note: Notification, allowed: Sequence[str]) -> Answer:
    """Send a message; never raises for what a service does.

    Args:
        url: An Apprise URL.
        note: The message.
        allowed: Hosts, addresses and networks that may be called although not public.
    """
    request = Request(
        url=url,
        title=plain(note.title),
        body=plain(body_of(note)),
        kind=type_of(note),
        event=note.kind,
        key=key_of(note),
        is_end=note.kind in _OVER,
        allowed=list(allowed),
    )
    begun_s = time.monotonic()
    found = await _outcome(msgspec.json.encode(request))
    took_ms = int((time.monotonic() - begun_s) * 1000)
    if found is None:
        return Answer(None, took_ms, f"no answer within {TIMEOUT_S:g} s")
    if found.taken:
        return Answer(None, took_ms, taken=True)
    if found.called_inward:
        return Answer(None, took_ms, NOT_ALLOWED, barred=True)
    why = found.why or "it was not taken, and Apprise does not say why"
    return Answer(found.status, took_ms, why, barred=found.refused)


async def _outcome(request: bytes) -> Outcome | None:
    """Run the process; None if its time was up."""
    try:
        process = await _started()
    except OSError as error:
        return Outcome(why=f"its process could not be started: {error.strerror}")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            written, _ = await process.communicate(request)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(written, type=Outcome)
    except msgspec.DecodeError:
        return Outcome(why="it broke off without a word")


async def _started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        _PROCESS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # Nothing of the job's environment: no proxy, no home, no setting.
        env={"NETRC": os.devnull, "HOME": os.devnull, "PATH": ""},
    )
