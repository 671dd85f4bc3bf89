"""Writes what docs/cli.md says of each command: `python -m weir_cli.reference docs/cli.md`.

The part between the two marks is made from the parser; a test compares it with the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weir_cli.__main__ import parser
from weir_cli.exits import MEANINGS

BEGIN: Final = "<!-- made from the parser by `python -m weir_cli.reference docs/cli.md` -->"
END: Final = "<!-- end of what is made -->"
# In every command, and told once on the page.
COMMON: Final = frozenset({"help", "url", "key_file", "wait", "json"})


def reference() -> str:
    """Return the exit codes, and a section for each command."""
    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    lines = ["| exit code | when |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    for name, command in subparsers.choices.items():
        lines += ["", f"## weir {name}", "", *_about(command.description or "")]
        options = list(_options(command))
        if options:
            lines += ["", "| argument | meaning |", "|---|---|", *options]
    return "\n".join(lines)


def written(page: str) -> str:
    """Return a page with the part between the marks made anew.

    Raises:
        ValueError: If the marks are not there.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = f"the page must have the marks {BEGIN!r} and {END!r}, got a page without; add them"
        raise ValueError(msg)
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def _about(description: str) -> Iterator[str]:
    """Yield a description as Markdown: what follows a `$` is typed into a shell."""
    shown = False
    for line in description.strip().splitlines():
        if line.startswith("$ ") != shown:
            shown = not shown
            yield "```sh" if shown else "```"
        yield line[2:] if shown else line
    if shown:
        yield "```"


def _options(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        if action.dest in COMMON:
            continue
        says = (action.help or "").replace("%%", "%").replace("|", "\\|")
        yield f"| `{_spelled(action)}` | {says} |"


def _spelled(action: argparse.Action) -> str:
    choices = ",".join(map(str, action.choices)) if action.choices else ""
    value = str(action.metavar or (f"{{{choices}}}" if choices else action.dest.upper()))
    if not action.option_strings:
        return value
    names = ", ".join(action.option_strings)
    return (names if action.nargs == 0 else f"{names} {value}").replace("|", "\\|")


def main() -> int:
    """Write the page that is named; return the exit code."""
    path = Path(sys.argv[1])
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
