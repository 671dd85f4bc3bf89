"""`weir send FILE…`: what files or standard input hold, as events; broken off, it goes on.

$ weir send orders.csv --type shop.order --time placed_at --id order_id
$ weir send /var/log/nginx/access.log.1.gz
$ produce | weir send - --format ndjson --rate 500

NDJSON, CSV whose first row names its columns, and access logs, also compressed with gzip. Each
event has an id, its own or one made of the input's name, the place in it and what stands there: so
what is sent again within the dedup horizon counts once. A resume file keeps up to where all is
confirmed; run again, it goes on there. What is refused or not understood is told by its line.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weir_cli import exits
from weir_cli.api import UnreachedError
from weir_cli.options import INGEST, add_command, address, key
from weir_cli.telling import complain, refuse, say, say_as_it_is, say_json

if TYPE_CHECKING:
    from weir_cli.sending.posting import Tried

FORMATS: Final = ("ndjson", "csv", "access-log")
SHOWN: Final = 10


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "send what files or standard input hold, as events, each counted once"
    command = add_command(commands, "send", says=says, about=__doc__, service=INGEST)
    command.add_argument(
        "file", metavar="FILE", type=Path, nargs="+", help="a file, or - for standard input"
    )
    _add_reading(command)
    _add_sending(command)
    command.set_defaults(run=run)


def _add_reading(command: Any) -> None:
    group = command.add_argument_group("how it is read")
    group.add_argument("--format", choices=FORMATS, help="by default guessed, and told")
    group.add_argument(
        "--pattern",
        metavar="PATTERN",
        help="of an access log: combined, common, nginx, or a regular expression with named groups",
    )
    group.add_argument(
        "--delimiter", metavar="SIGN", help="of CSV; by default a comma, of .tsv a tab"
    )
    group.add_argument("--type", help="the `type` of events that do not say one")
    group.add_argument(
        "--source",
        metavar="URI",
        help="the `source` of events that do not say one; by default urn:weir:send of those"
        " without an id",
    )
    for option, says in (
        ("--time", "when it happened"),
        ("--id", "its id; without one it is made of name, place and bytes"),
        ("--subject", "whom or what it is about"),
    ):
        group.add_argument(
            option, metavar="FIELD", help=f"the column, group or member that says {says}"
        )
    group.add_argument(
        "--text",
        metavar="FIELD",
        action="append",
        help="a column or group that stays text, also where it looks like a number; more than once",
    )
    group.add_argument(
        "--name",
        help="what the input is called in ids and resume files; by default where the file lies",
    )


def _add_sending(command: Any) -> None:
    group = command.add_argument_group("how it is sent")
    group.add_argument("--rate", metavar="N", type=float, help="events a second, evenly")
    group.add_argument(
        "--batch", metavar="N", type=int, default=1_000, help="events a request; by default 1000"
    )
    group.add_argument(
        "--give-up",
        metavar="SECONDS",
        type=float,
        default=600.0,
        help="how long without an answer it is tried again; by default 600",
    )
    group.add_argument("--state", metavar="FILE", type=Path, help="the resume file")
    group.add_argument("--no-state", action="store_true", help="keep none, send from the start")
    group.add_argument(
        "--restart",
        action="store_true",
        help="send from the start, whatever the resume file says; what was sent longer ago than the"
        " dedup horizon counts twice then",
    )
    group.add_argument(
        "--same-tenant",
        action="store_true",
        help="go on with another key than before: it is one of the same tenant",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="print the first events as they would be sent"
    )


def run(asked: argparse.Namespace) -> int:
    """Send every input; return the exit code.

    Raises:
        UsageError: If options, inputs, address or key cannot be used; nothing was sent.
        UnreachedError: If ingest did not answer in time.
    """
    # What they need is slower to load than most commands are to run.
    from weir_cli.sending import asked as said
    from weir_cli.sending.running import Run

    said.check_together(asked)
    limits = said.limits_of(asked)
    with ExitStack() as held:
        if asked.dry_run:
            return _shown(asked, held)
        target = said.Target(
            address(asked.url, INGEST).rstrip("/"), key(asked.key_file, os.environ)
        )
        run = Run(target, limits)
        now_ms = run.clock.now_ms()
        jobs = said.jobs_of(asked, target, now_ms, held)
        for note in (note for job in jobs for note in said.notes_on(job, asked, now_ms)):
            complain(note)
        failed = run.send(jobs)
    if asked.json:
        say_json(run.ended.told())
    else:
        say("\n".join(run.ended.lines()))
    return run.ended.code if failed is None else _refused(failed, asked, target.url)


def _refused(failed: Tried, asked: argparse.Namespace, url: str) -> int:
    """Tell why ingest took no more; return the exit code.

    Raises:
        UnreachedError: If it did not answer, or only to come later.
    """
    from weir_cli.sending.posting import Fate

    answer = failed.answer
    if answer is not None and failed.fate is Fate.REFUSED:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    said = f": {answer.sentence}" if answer is not None and answer.sentence else ""
    msg = (
        f"ingest at {url} must answer, {failed.why} for {asked.give_up:g} s{said};"
        f" {failed.mend or '--give-up waits longer'}; another run goes on where this one was"
    )
    raise UnreachedError(msg, answer)


def _shown(asked: argparse.Namespace, held: ExitStack) -> int:
    """Print the first events of each input; return the exit code."""
    from weir_cli.sending.asked import opened
    from weir_cli.sending.running import first_of

    code = exits.DONE
    for path in asked.file:
        one = opened(path, asked)
        held.callback(one.source.close)
        complain(f"{one.source.label} is read as {one.form.told()}")
        for made in first_of(one, SHOWN):
            if made.event:
                say_as_it_is(f"{made.event.decode('utf-8', 'replace')}\n")
            else:
                complain(f"{one.source.label}, line {made.entry.line:,}: {made.why}")
                code = exits.LEFT_OUT
    return code
