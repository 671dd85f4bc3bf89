"""What a command ends with."""

from __future__ import annotations

from typing import Any, Final

DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
UNREACHED: Final = 3
DIFFERENT: Final = 4
NOT_YET: Final = 5
NOT_COMPARED: Final = 6
UNWRITTEN: Final = 7
LEFT_OUT: Final = 8
STOPPED: Final = 130

MEANINGS: Final = {
    DONE: "all of it is done",
    REFUSED: "the dashboard, or ingest, refused something, or a job failed or was cancelled; what"
    " was told as done is done",
    USAGE: "the command line, a file or the key cannot be used; nothing was sent",
    UNREACHED: "the dashboard, or ingest, did not answer in time; what was told as done is done",
    DIFFERENT: "`diff` found a difference, or `audit` a pane that is not what the log says",
    NOT_YET: "`--follow` ended before all metrics served by what was stored; they are counted on",
    NOT_COMPARED: "`audit` compared nothing, or nothing of some of what it was asked for; what it"
    " did compare is what the log says",
    UNWRITTEN: "all of it is done, and standard output could not take all that was said of it",
    LEFT_OUT: "`send` left something out or broke off, as it told: what was quarantined or not"
    " understood, an input or a resume file that failed; the rest is done",
    STOPPED: "stopped by Ctrl-C; a job that was asked for goes on",
}
"""Exit code -> when; in the help, and in the documentation."""

EXPLAINED: Final = "\n".join(
    ("exit codes:", *(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items()))
)


class UsageError(Exception):
    """Something that the caller gave cannot be used; the text says what and how to mend it."""

    def error(self) -> dict[str, Any]:
        """Return it as programs read it."""
        return {"code": "usage", "message": str(self), "errors": []}
