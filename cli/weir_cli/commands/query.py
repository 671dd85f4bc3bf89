"""`weir query METRIC AGGREGATE`: numbers of a metric, window by window.

$ weir query orders rate --last 1h --step 5m
$ weir query checkout_latency p95 --window 5m --kind sliding --by region --where route=/pay

Numbers have every digit that is known of them. In place of the value of a dimension stands `-`
where events have none, `""` for an empty text, and `(other)` for several series together; a
text that looks like one of these is in quotes. What the query of a file compares with stands in
columns behind the others. Standard error says how many series there are, if --top leaves some
out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weir_cli import exits
from weir_cli.api import CSV, Answer
from weir_cli.files import text_of
from weir_cli.options import add_command, reached
from weir_cli.telling import complain, instant, refuse, say, say_as_it_is, say_json, table

KINDS = ("tumbling", "hopping", "sliding")
CONDITION = re.compile(r"([^=!~]+)(!=|=|~)(.*)", re.DOTALL)
STATES = {
    "n": "not kept",
    "r": "rebuilding",
    "i": "incomplete",
    "p": "provisional",
    "f": "final",
}
# What a series of several has in place of values of dimensions, and one that has no value.
OTHER: Final = "(other)"
NONE: Final = "-"
WORDS: Final = {
    "METRIC": "metric",
    "AGGREGATE": "aggregate",
    "--last": "last",
    "--from": "begin",
    "--to": "end",
    "--window": "window",
    "--kind": "kind",
    "--step": "step",
    "--by": "by",
    "--where": "where",
    "--top": "top",
    "--after": "after",
}
"""What says a query on the command line -> what the parser calls it."""


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
        *("-f", "--file"),
        type=Path,
        metavar="FILE",
        help="a query as JSON, in place of all of it; - for standard input",
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
    accept = {"Accept": CSV if asked.csv else "application/json"}
    answer = reached(asked).call("POST", "/query", body, accept)
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    _tell(asked, answer)
    if not asked.json:
        _complain(answer.beside if asked.csv else answer.body, body)
    return exits.DONE


def question(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the query of the command line; what is left out is left to the dashboard.

    What was typed is asked for, be it 0 or an empty text: it is for the dashboard to refuse that.

    Raises:
        UsageError: If it is none, or two.
    """
    if asked.file is not None:
        beside = [word for word, of in WORDS.items() if getattr(asked, of) not in (None, [])]
        if beside:
            msg = (
                f"--file must stand in place of all of a query, got {', '.join(beside)} beside it;"
                " write that into the file, or leave it out"
            )
            raise exits.UsageError(msg)
        return _read(asked.file)
    if not asked.metric or not asked.aggregate:
        msg = "a query must have METRIC and AGGREGATE, or a file (-f), got less"
        raise exits.UsageError(msg)
    body: dict[str, Any] = {"metric": asked.metric, "aggregate": asked.aggregate}
    window = _typed({"kind": asked.kind, "length": asked.window})
    more = {
        "range": _range(asked),
        "window": {"kind": "tumbling", **window} if window else None,
        "step": asked.step,
        "by": asked.by or None,
        "where": [condition(text) for text in asked.where] or None,
        "limit": None if asked.top is None else {"top": asked.top},
        "after": asked.after,
    }
    return body | _typed(more)


def _typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was typed of it."""
    return {name: value for name, value in given.items() if value is not None}


def _range(asked: argparse.Namespace) -> dict[str, Any] | None:
    """Return the span of time that is asked for; None if nothing says it."""
    if asked.begin is None and asked.end is None:
        return None if asked.last is None else {"last": asked.last}
    if asked.last is not None:
        msg = "a span must be said by --last, or by --from and --to, got both; leave one out"
        raise exits.UsageError(msg)
    return {"from": asked.begin, "to": asked.end}


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
        body = json.loads(text_of(file))
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
        say_as_it_is(answer.body)
    else:
        for line in lines_of(answer.body):
            say(line)


def _complain(about: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Say on standard error what is to be known of an answer.

    Args:
        about: Its members that are about all of it.
        body: The query.
    """
    top, of = (body.get("limit") or {}).get("top"), about.get("of")
    if top is not None and of is not None and of > top:
        complain(f"{top} of {of:,} series are shown, those that are largest now")
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
    """Return an answer as a table: a line for each window of each series.

    What it is compared with stands in columns behind it.
    """
    series = answer["series"]
    names = list(dict.fromkeys(name for one in series for name in one["by"]))
    if not names and any(map(_is_other, series)):
        names = ["series"]  # nobody is told what the dimensions are called
    offsets = dict.fromkeys(then["offset"] for one in series for then in one.get("compare") or ())
    head = ["window ends", *names]
    for value in ("value", *(f"{offset} before" for offset in offsets)):
        head += [value, "low", "high", "events", ""]
    rows = [
        [
            instant(t_ms),
            *(_dimension(one, name) for name in names),
            *(cell for of in (one, *(one.get("compare") or ())) for cell in _cells(of, at)),
        ]
        for one in series
        for at, t_ms in enumerate(answer["t_ms"])
    ]
    return table([head, *rows]) if rows else [_nothing(answer)]


def _nothing(answer: Mapping[str, Any]) -> str:
    """Say that there is no series, and no more than is known of why."""
    if (answer.get("fresh") or {}).get("status") == "rebuilding":
        return "no series yet: the numbers are being counted again"
    if any(note["code"] == "capped" for note in answer.get("notes") or []):
        return "no series: those of that time are not known one by one, since the metric is capped"
    return "no series: nothing of this metric is counted in that time"


def _is_other(one: Mapping[str, Any]) -> bool:
    return bool(one.get("other"))


def _dimension(one: Mapping[str, Any], name: str) -> str:
    """Return the value of a dimension; in quotes what would be taken for something else."""
    if _is_other(one):
        return OTHER
    value = one["by"].get(name)
    if value is None:
        return NONE
    is_plain = value not in ("", NONE, OTHER) and not value.startswith('"')
    return str(value) if is_plain else json.dumps(value, ensure_ascii=False)


def _cells(one: Mapping[str, Any], at: int) -> list[str]:
    if "items" in one:
        found = [json.dumps(one["items"][at]), "", ""]
    else:
        found = [_shown(one[name][at]) if name in one else "" for name in ("value", "low", "high")]
    return [*found, _shown(one["count"][at]), STATES[one["state"][at]]]


def _shown(value: float | None) -> str:
    """Return a number with every digit that is known of it, and no more; a zero has no sign."""
    return NONE if value is None else repr(value or 0).removesuffix(".0")
