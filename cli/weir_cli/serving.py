"""Follows new versions of metrics until they serve: `--follow` of `apply` and `rollback`.

A version is counted from the log while the one before it serves, and then takes its place.
Other definitions are in force at once.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from weir_cli import exits
from weir_cli.api import Answer, Api, UnreachedError, quoted
from weir_cli.following import FIRST_PAUSE_S, Progress, bar_of, follow_until, share_of
from weir_cli.telling import complain, printable, refuse, say, say_json

TIMEOUT_S: Final = 600.0
LONGEST_S: Final = 86_400.0
# Another replica of the dashboard may read a version a moment after one stored it.
UNREAD_S: Final = 5.0
# Name of a metric, and number of a version of it.
Version = tuple[str, int]


def add_following(command: Any) -> None:
    """Add `--follow` and `--timeout`."""
    command.add_argument(
        "--follow",
        action="store_true",
        help="wait until each metric serves by its new version, and tell how far it is counted",
    )
    command.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=TIMEOUT_S,
        help=f"how long --follow waits, {LONGEST_S:.0f} at most; by default {TIMEOUT_S:.0f}",
    )


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= LONGEST_S:
        msg = f'seconds must be more than 0 and at most {LONGEST_S:.0f}, got "{text}"'
        raise argparse.ArgumentTypeError(msg)
    return found


def follow_all(api: Api, versions: Sequence[Version], asked: argparse.Namespace) -> int:
    """Follow versions of metrics until all serve; return the exit code, the first that is not 0.

    Args:
        api: The dashboard.
        versions: Which; one after the other, since the last that serves decides.
        asked: The options: until when, and how it is told.

    Raises:
        UnreachedError: If the dashboard did not answer in time; counting goes on.
    """
    deadline_s = time.monotonic() + asked.timeout
    codes = [_follow(api, one, deadline_s, as_json=asked.json) for one in versions]
    return next((code for code in codes if code != exits.DONE), exits.DONE)


def _follow(api: Api, version: Version, deadline_s: float, *, as_json: bool) -> int:
    name, number = version
    where = f"/definitions{quoted('metric', name)}/progress"
    progress = Progress(lambda told: line_of(told, number))
    counted_on = f"it is counted all the same; `weir get metric/{name}` says how far"

    def ask() -> Answer:
        return api.poll(where, deadline_s - time.monotonic())

    try:
        answer = _first(ask)
        if answer.is_ok:
            over = partial(is_over, number=number)
            answer = follow_until(ask, answer, progress, over, deadline_s)
    except KeyboardInterrupt:
        complain(counted_on)
        raise
    except UnreachedError as error:
        error.add_note(counted_on)
        raise
    finally:
        progress.end()
    return _told(answer, version, as_json=as_json)


def _first(ask: Callable[[], Answer]) -> Answer:
    until_s = time.monotonic() + UNREAD_S
    while True:
        answer = ask()
        if answer.status != HTTPStatus.NOT_FOUND or time.monotonic() >= until_s:
            return answer
        time.sleep(FIRST_PAUSE_S)


def is_over(progress: dict[str, Any], number: int) -> bool:
    """Tell whether a version serves, or never will since a newer one has taken its place.

    A replica of the dashboard that has not read of it yet tells of the one before.
    """
    found = int(progress["version"])
    return found > number or (found == number and progress["serving"])


def line_of(progress: dict[str, Any], number: int) -> str:
    """Return how far a version is, as one line."""
    start = f"metric/{progress['name']} version {number}:"
    if progress["version"] > number:
        return f"{start} version {progress['version']} has taken its place"
    if progress["version"] < number:
        return f"{start} not read yet"
    if progress["serving"]:
        return f"{start} serves"
    state = "counted back" if progress["active"] else "not begun"
    at, of = counted(progress)
    bar = f" {bar_of(at, of)}" if of else ""
    why = f", {progress['waits_for']}" if progress["waits_for"] else ""
    return printable(f"{start} {state}{bar}{why}")


def counted(progress: dict[str, Any]) -> tuple[int, int]:
    """Return how many records of the log were counted back for a version, and of how many."""
    lanes = progress["lanes"]
    return sum(lane["at"] for lane in lanes), sum(lane["of"] for lane in lanes)


def why_not(progress: dict[str, Any]) -> str | None:
    """Return how far a version is that does not serve yet, or why; None if nobody knows."""
    at, of = counted(progress)
    share = f"counted back {share_of(at, of)}" if of else ""
    return "; ".join(filter(None, (share, progress.get("waits_for")))) or None


def _told(answer: Answer, version: Version, *, as_json: bool) -> int:
    """Tell what came of a version; return its exit code."""
    name, number = version
    if not answer.is_ok:
        refuse(answer, as_json=as_json)
        return exits.REFUSED
    if as_json:
        say_json(answer.body)
    if answer.body["version"] == number and answer.body["serving"]:
        if not as_json:
            say(f"serves    metric/{name} version {number}")
        return exits.DONE
    if answer.body["version"] > number:
        complain(line_of(answer.body, number))
        return exits.REFUSED
    complain(f"metric/{name} version {number} does not serve in time; it is counted all the same")
    return exits.NOT_YET
