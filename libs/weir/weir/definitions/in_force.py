"""Which version of a definition is in force, and why a newer one is not.

The API checks a text before it is written, but any producer may append to the topic, and
a later release may know members that this one does not. So every reader checks again: a
version whose text it cannot use keeps its number, so that writers of all releases agree
on what a change must be based on, and does nothing else. The version before it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from weir.definitions.history import Definition
from weir.problems import ProblemError


def in_force(versions: Sequence[Definition]) -> Definition | None:
    """Return the newest version that can be used; None if there is none, or it is deleted.

    Args:
        versions: All versions of one definition, the oldest first.
    """
    for version in reversed(versions):
        if version.deleted:
            return None
        if version.readable is not None:
            return version
    return None


def refusal(version: Definition) -> ProblemError | None:
    """Return why a version is passed over; None of one that can be used, or of a deletion."""
    if version.deleted or version.readable is not None:
        return None
    try:
        version.model  # noqa: B018  it raises the refusal
    except ProblemError as problem:
        return problem
    return None
