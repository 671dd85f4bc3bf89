"""The commands. A new one is a module with `add` in this package, and its line here."""

from __future__ import annotations

from weir_cli.commands import apply

COMMANDS = (apply,)
"""Each has `add(commands)`, which says its words and sets `run(arguments) -> exit code`."""
