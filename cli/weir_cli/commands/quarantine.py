"""`weir quarantine`: what could not be used, newest first, and how many more have no copy.

Of what one version of a metric cannot use a part is copied alone; standard error says how many
more there were, and what counts them. `--summary` adds up everything, by version and partition.
"""

from __future__ import annotations

import argparse
import urllib.parse
from typing import Any

from weir_cli import exits
from weir_cli.options import add_command, reached
from weir_cli.telling import complain, instant, refuse, say, say_json, table

PAGE = 500
COLUMNS = ["id", "copied", "reason", "of", "source", "bytes"]
SUMMED = ["of", "partition", "copies", "left out"]
OLDER = "there may be older ones: `-n` lists more, `--summary` adds up as many as are read"
BOUNDED = "older ones were not read: a reading ends after 50,000 records, or 256 MB, of all tenants"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "list what could not be used, and how much more there was"
    command = add_command(commands, "quarantine", says=says, about=__doc__)
    command.add_argument("--reason", metavar="CODE", help="only those quarantined for this")
    command.add_argument("-n", "--limit", type=int, default=100, help="how many; by default 100")
    command.add_argument("--summary", action="store_true", help="how many are copied, how many not")
    command.add_argument("--metric", metavar="NAME", help="with --summary: only of its versions")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """List records, or add them up; return the exit code.

    Raises:
        UsageError: If the options do not go together, or address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    if not 1 <= asked.limit <= PAGE:
        msg = f"--limit must be between 1 and {PAGE}, got {asked.limit}"
        raise exits.UsageError(msg)
    if asked.metric is not None and not asked.summary:
        msg = "--metric must come with --summary, got it alone; records are listed by --reason"
        raise exits.UsageError(msg)
    if asked.reason is not None and asked.summary:
        msg = "--reason must be left out with --summary: of what has no copy nobody knows it"
        raise exits.UsageError(msg)
    answer = reached(asked).call("GET", _path(asked))
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    if asked.json:
        say_json(answer.body)
    else:
        _tell(answer.body, is_summary=asked.summary)
    return exits.DONE


def _path(asked: argparse.Namespace) -> str:
    path, given = "/quarantine", {"limit": asked.limit, "reason": asked.reason}
    if asked.summary:
        path, given = "/quarantine/summary", {"metric": asked.metric}
    query = urllib.parse.urlencode({name: v for name, v in given.items() if v is not None})
    return f"{path}?{query}" if query else path


def _tell(body: dict[str, Any], *, is_summary: bool) -> None:
    columns, row = (SUMMED, _summed) if is_summary else (COLUMNS, _row)
    if body["items"]:
        say("\n".join(table([columns, *map(row, body["items"])])))
    for one in body["items"] if is_summary else body["left_out"]:
        if one["message"]:
            complain(one["message"])
    if not body["whole"]:
        complain(BOUNDED if is_summary else OLDER)


def _row(one: dict[str, Any]) -> list[str]:
    cells = (instant(one["at_ms"]), one["reason"], _of(one), one["source"], f"{one['bytes']:,}")
    return [one["id"], *cells]


def _summed(one: dict[str, Any]) -> list[str]:
    where = "?" if one["partition"] is None else str(one["partition"])
    return [_of(one), where, f"{one['copies']:,}", f"{one['left_out']:,}"]


def _of(one: dict[str, Any]) -> str:
    """Return who could not use a record."""
    if one["version"] is None:
        return "all"
    if one["metric"] is None:
        return f"version with id {one['version']}"
    return f"{one['metric']} version {one['metric_version']}"
