"""The seed of a run of tests that draw, and how a red one is repeated."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable


def seed_of_run() -> int:
    """Return `WEIR_SEED`, else a new seed."""
    return int(os.environ.get("WEIR_SEED") or secrets.randbelow(1_000_000))


def repetition(seed: int, test: str, knobs: Iterable[str] = ()) -> tuple[str, str]:
    """Return heading and words of what pytest says under a failure: the command that repeats it.

    Args:
        seed: Of this run.
        test: Its node id.
        knobs: What else may be told by the environment.
    """
    told = "".join(f"{name}={os.environ[name]} " for name in knobs if name in os.environ)
    command = f"WEIR_SEED={seed} {told}.venv/bin/python -m pytest '{test}'"
    return "to repeat it", f"seed {seed}: {command}"
