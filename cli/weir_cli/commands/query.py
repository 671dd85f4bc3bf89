"""`weir query METRIC AGGREGATE`: numbers of a metric, window by window.

$ weir query orders rate --last 1h --step 5m
$ weir query checkout_latency p95 --window 5m --kind sliding --by region --where route=/pay
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer
from weir_cli.options import add_command, reached
from weir_cli.telling import complain, instant, refuse, say, say_json, table

KINDS = ("tumbling", "hopping", "sliding")
CONDITION = re.compile(r"([^=!~]+)(!=|=|~)(.*)", re.DOTALL)
STATES = {
    "n": "not kept",
    "r": "rebuilding",
    "i": "incomplete",
    "p": "provisional",
    "f": "final",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "query", says="ask for numbers", about=__doc__)
    command.add_argument("metric", nargs="?", metavar="METRIC", help="its name")
    command.add_argument("aggregate", nargs="?", metavar="AGGREGATE", help="such as rate or p95")
    span = command.add_argument_group("windows")
    span.add_argument("--last", metavar="LENGTH", help="how far back; by default 1h")
    span.add_argument("--from", dest="begin", metavar="INSTANT", help="ISO 8601 with a zone")
    span.add_argument("--to", dest="end", metavar="INSTANT", help="likewise")
    span.add_argument("--window", metavar="LENGTH", help="by default as long as a step")
    span.add_argument("--kind", choices=KINDS, help="by default tumbling")
    span.add_argument("--step", metavar="LENGTH", help="by default a 120th of the range")
    series = command.add_argument_group("series")
    series.add_argument(
        "--by", action="append", default=[], metavar="DIMENSION", help="a series for each value"
    )
    series.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="name=value, name!=value or name~pattern with %% for any characters",
    )
    series.add_argument("--top", type=int, metavar="N", help="the N series that are largest now")
    command.add_argument("--after", metavar="POSITION", help="once these events are counted")
    command.add_argument("--csv", action="store_true", help="print CSV")
    command.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="a query as JSON, in place of all of it"
    )
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Ask once; return the exit code.

    Raises:
        UsageError: If the question, address or key cannot be used; nothing was sent.
        UnreachedError: If the dashboard did not answer in time.
    """
    if asked.csv and asked.json:
        msg = "an answer must have one form, got --csv and --json; leave one of them out"
        raise exits.UsageError(msg)
    body = question(asked)
    accept = {"Accept": "text/csv"} if asked.csv else {"Accept": "application/json"}
    answer = reached(asked).call("POST", "/query", body, accept)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    _tell(asked, answer)
    return exits.DONE


def question(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the query of the command line; what is left out is left to the dashboard.

    Raises:
        UsageError: If it is none.
    """
    if asked.file is not None:
        return _read(asked.file)
    if not asked.metric or not asked.aggregate:
        msg = "a query must have METRIC and AGGREGATE, or a file (-f), got less"
        raise exits.UsageError(msg)
    body: dict[str, Any] = {"metric": asked.metric, "aggregate": asked.aggregate}
    if asked.begin or asked.end:
        body["range"] = {"from": asked.begin, "to": asked.end}
    elif asked.last:
        body["range"] = {"last": asked.last}
    if asked.window or asked.kind:
        length = {"length": asked.window} if asked.window else {}
        body["window"] = {"kind": asked.kind or "tumbling", **length}
    more = {"step": asked.step, "by": asked.by, "after": asked.after}
    body |= {name: value for name, value in more.items() if value}
    if asked.where:
        body["where"] = [condition(text) for text in asked.where]
    return body | ({"limit": {"top": asked.top}} if asked.top else {})


def condition(text: str) -> list[str]:
    """Return a condition as a query has it.

    Raises:
        UsageError: If it is none.
    """
    found = CONDITION.fullmatch(text)
    if found:
        name, sign, value = found.groups()
        return [name, "like" if sign == "~" else sign, value]
    msg = f'--where must be name=value, name!=value or name~pattern, got "{text}"'
    raise exits.UsageError(msg)


def _read(file: Path) -> dict[str, Any]:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"--file must be a query as JSON: {error}"
        raise exits.UsageError(msg) from None
    if not isinstance(body, dict):
        msg = f"--file must hold one JSON object, got {type(body).__name__}"
        raise exits.UsageError(msg)
    return body


def _tell(asked: argparse.Namespace, answer: Answer) -> None:
    if asked.json:
        say_json(answer.body)
        return
    if asked.csv:
        sys.stdout.write(answer.body)
    else:
        for line in lines_of(answer.body):
            say(line)
    about = answer.beside if asked.csv else answer.body
    for note in about.get("notes") or []:
        complain(note["message"])
    if (old := how_old(about.get("fresh") or {})) is not None:
        complain(old)


def how_old(fresh: dict[str, Any]) -> str | None:
    """Return since when numbers are old, in words; None if they are not, or nobody says."""
    status, since_ms = fresh.get("status", "live"), fresh.get("since_ms")
    if status == "live":
        return None
    if status == "rebuilding":
        done = fresh.get("progress")
        share = f", {done:.0%} done" if done is not None else ""
        return f"the numbers are being counted again{share}; some are missing until then"
    since = f" since {instant(since_ms)}" if since_ms is not None else ""
    part = f", because of {fresh['part']}" if fresh.get("part") else ""
    return f"the numbers are {status}{since}{part}"


def lines_of(answer: dict[str, Any]) -> list[str]:
    """Return an answer as a table: a line for each window of each series."""
    series = answer["series"]
    names = list(dict.fromkeys(name for one in series for name in one["by"]))
    head = ["window ends", *names, "value", "low", "high", "events", ""]
    rows = [
        [instant(t_ms), *(str(one["by"].get(name) or "-") for name in names), *_cells(one, at)]
        for one in series
        for at, t_ms in enumerate(answer["t_ms"])
    ]
    return table([head, *rows]) if rows else ["no series: no event of this metric in that time"]


def _cells(one: dict[str, Any], at: int) -> list[str]:
    if "items" in one:
        return [
            json.dumps(one["items"][at]),
            "",
            "",
            _shown(one["count"][at]),
            STATES[one["state"][at]],
        ]
    found = [_shown(one[name][at]) for name in ("value", "low", "high", "count") if name in one]
    return [*found, *[""] * (4 - len(found)), STATES[one["state"][at]]]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
