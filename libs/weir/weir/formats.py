"""Format versions: what a newer release wrote is refused with a reason, and never misread.

What is stored says the version of its format: a JSON text by its member `v`, counted from 1;
one without it is of version 1. A member that this release does not know is no new version,
and is ignored. A change after which the members that it does know no longer say all is one.

Whoever needs what is refused cannot go on: a request is answered 503 with the reason, and a
job that would write on top of it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from weir.problems import ProblemError, Reason


class NewerFormatError(ProblemError, ValueError):
    """A newer release wrote this, and what it means is not known here."""

    def __init__(self, message: str) -> None:
        super().__init__(503, Reason.NOT_AVAILABLE, message)


def refusal(what: str, found: int, newest: int) -> str | None:
    """Return why a version cannot be read; None if it can.

    Args:
        what: What it is the version of.
        found: The version.
        newest: The newest that this release reads.
    """
    if found <= newest:
        return None
    return (
        f"{what} must be of format version {newest} or below, got {found}: a newer release of "
        "Weir wrote it; run that release again, or a newer one"
    )


def check(what: str, found: int, newest: int) -> None:
    """Do nothing for a version that this release reads; arguments as of `refusal`.

    Raises:
        NewerFormatError: If it is newer.
    """
    if (why := refusal(what, found, newest)) is not None:
        raise NewerFormatError(why)


@dataclass(slots=True)
class Newer:
    """What somebody who reads a whole topic or stream has met of a newer release.

    Attributes:
        why: Why the first of it could not be read; None while there was nothing. What else
            was read is then not all that is known.
    """

    why: str | None = None

    def meet(self, why: str | None) -> None:
        """Take note of why something cannot be read; None is nothing."""
        self.why = self.why or why

    def check(self) -> None:
        """Do nothing while nothing was met.

        Raises:
            NewerFormatError: If something was.
        """
        if self.why is not None:
            raise NewerFormatError(self.why)


class _Versioned(msgspec.Struct):
    v: int = 1


_VERSION = msgspec.json.Decoder(_Versioned)


def checked(text: bytes, what: str, newest: int) -> bytes:
    """Return a JSON text as it is, if this release reads its version.

    Raises:
        NewerFormatError: If it is newer.
        ValueError: If the text is no JSON object.
    """
    check(what, _VERSION.decode(text).v, newest)
    return text
