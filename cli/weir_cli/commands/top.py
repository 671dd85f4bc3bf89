"""`weir top`: how fresh the numbers are, what fires, each part and each metric, live.

On a terminal the screen is drawn anew as things change, until Ctrl-C. Where standard output
is no terminal, or with --plain, a report is written every --every seconds, as long as somebody
reads. Numbers have four digits, or all before the point; with --json, as `weir query` has them.

What was not told is unknown, which is not nothing: with its reason, and null with --json. With
-n only what is known is a report: a connection that cannot be had, or is lost until the next
report is due, ends with exit code 3, and so does what is not told within 30 s; --wait waits
longer.
"""

from __future__ import annotations

import argparse
from typing import Any

from weir_cli.options import add_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = add_command(commands, "top", says="watch everything, live", about=__doc__)
    command.add_argument(
        "metrics", nargs="*", metavar="METRIC", help="these metrics; by default the first 20"
    )
    command.add_argument("--plain", action="store_true", help="reports, also on a terminal")
    command.add_argument(
        "--every", type=float, default=10.0, metavar="SECONDS", help="between two reports"
    )
    command.add_argument("-n", "--count", type=int, metavar="N", help="end after N reports")
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Watch until it is stopped; return the exit code.

    Raises:
        UsageError: If address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time, or sends the key away.
    """
    # What it needs takes longer to load than most other commands take in all.
    from weir_cli import live

    return live.run(asked)
