"""Say in one sentence why a part ended, from what it wrote last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir_local.process import last_error

if TYPE_CHECKING:
    from weir_local.process import Part

# How far back a cause is looked for.
LINES = 200


@dataclass(frozen=True)
class Symptom:
    """What a log shows, and what it means.

    Attributes:
        shows: Pattern of a line.
        means: The cause and the mend, in words.
    """

    shows: str
    means: str


SYMPTOMS = (
    Symptom(
        r"No space left on device|ENOSPC|Disk quota exceeded",
        "the disk is full; free some space and run `make up` again: nothing accepted is lost",
    ),
    Symptom(
        # The limit of the JVM's own: what other programs use does not matter.
        r"OutOfMemoryError: (Java heap space|GC overhead limit exceeded|Metaspace)",
        "its JVM is full, however much memory is free; give panes more with "
        "WEIR_ANALYTICS_DRIVER_MEMORY=2g and run `make up` again",
    ),
    Symptom(
        r"OutOfMemoryError|insufficient memory for the Java Runtime|Cannot allocate memory|"
        r"MemoryError|OOM command not allowed",
        "there is not enough memory; close other programs and run `make up` again",
    ),
    Symptom(
        r"Address already in use|address already in use|EADDRINUSE",
        "its port is taken; stop what listens there, or choose others with WEIR_PORT_BASE",
    ),
    Symptom(
        r"Too many open files",
        "it may not open enough files; raise the limit (`ulimit -n 4096`) and run `make up` again",
    ),
    Symptom(
        r"No module named",
        "a Python package is missing; run `make setup`",
    ),
)


def explain(part: Part) -> str:
    """Return why a part ended, as far as what it wrote since its start tells."""
    written = part.written()
    for line in reversed(written[-LINES:]):
        for symptom in SYMPTOMS:
            if re.search(symptom.shows, line):
                return f"{symptom.means} (it wrote: {line.strip()[:160]})"
    return last_error(written)
