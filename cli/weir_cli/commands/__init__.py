"""The commands. A new one is a module with `add` in this package, and its line here."""

from __future__ import annotations

from weir_cli.commands import (
    apply,
    check,
    completion,
    diff,
    get,
    history,
    jobs,
    keys,
    quarantine,
    query,
    rollback,
    send,
    top,
)

COMMANDS = (
    apply,
    check,
    diff,
    get,
    history,
    rollback,
    send,
    query,
    top,
    quarantine,
    jobs.AUDIT,
    jobs.REPLAY,
    jobs.ADOPT,
    jobs.ERASE,
    jobs.JOBS,
    keys,
    completion,
)
"""Each has `add(commands)`, which says its words and sets `run(arguments) -> exit code`."""
