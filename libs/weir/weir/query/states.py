"""States: how far a window can be relied on, one letter each; the worst pane decides.

n   not kept: some of its panes have expired, or no version holds them
r   rebuilding: some are being counted again, so nothing is said
i   incomplete: the log of some is partly gone; what is left is said
p   provisional: late events are still counted as a matter of course
f   final: processed-through has passed its end plus the allowed lateness
"""

from __future__ import annotations

from typing import Final

from weir.panes import floor_to
from weir.query.facts import Facts
from weir.query.reading import Reading

NOT_KEPT: Final = "n"
REBUILDING: Final = "r"
INCOMPLETE: Final = "i"
PROVISIONAL: Final = "p"
FINAL: Final = "f"
_WORST_FIRST: Final = NOT_KEPT + REBUILDING + INCOMPLETE + PROVISIONAL + FINAL
# Nothing is said of a window in these; in the last two, no rows means no events.
SILENT: Final = frozenset((NOT_KEPT, REBUILDING))
COMPLETE: Final = frozenset((PROVISIONAL, FINAL))


def worst(one: str, other: str) -> str:
    """Return the worse of two letters."""
    return one if _WORST_FIRST.index(one) <= _WORST_FIRST.index(other) else other


def final_to(reading: Reading, facts: Facts) -> int | None:
    """Return the instant up to which windows are final, on a pane's edge.

    A version before may wait longer for late events: until its panes among those that are read
    are final, nothing behind them is.
    """
    if facts.processed_through_ms is None:
        return None
    finals = []
    for version, _from_ms, to_ms in reading.served.stretches(reading.pane_ms):
        final_ms = facts.processed_through_ms - version.metric.lateness_ms
        waits = to_ms is None or reading.windows.start_ms < to_ms > final_ms
        if waits and reading.answered_by(version):
            finals.append(floor_to(final_ms, reading.pane_ms))
    return min(finals, default=None)


def newest_final_to(reading: Reading, facts: Facts) -> int | None:
    """Return the instant up to which windows are final of the version that counts the present."""
    if facts.processed_through_ms is None:
        return None
    lateness_ms = reading.served.newest.metric.lateness_ms
    return floor_to(facts.processed_through_ms - lateness_ms, reading.pane_ms)


def window_states(reading: Reading, facts: Facts) -> str:
    """Return the letter of each window of a reading.

    A window that begins before the oldest kept pane is not kept, whatever the rest says.
    Of the kept panes few are anything but provisional or final; the windows are walked
    once beside those few.
    """
    starts = reading.windows.pane_starts(reading.pane_ms, reading.kept_since_ms)
    flagged = [
        (start, letter) for start in starts if (letter := _pane_letter(reading, facts, start))
    ]
    final_ms = final_to(reading, facts)
    letters = []
    low = high = 0
    for end_ms in reading.windows.ends_ms:
        begin_ms = end_ms - reading.windows.length_ms
        while high < len(flagged) and flagged[high][0] < end_ms:
            high += 1
        while low < high and flagged[low][0] < begin_ms:
            low += 1
        letter = FINAL if final_ms is not None and end_ms <= final_ms else PROVISIONAL
        if low < high:
            letter = _WORST_FIRST[min(_WORST_FIRST.index(f[1]) for f in flagged[low:high])]
        if begin_ms < reading.kept_since_ms:
            letter = NOT_KEPT
        letters.append(letter)
    return "".join(letters)


def _pane_letter(reading: Reading, facts: Facts, start_ms: int) -> str | None:
    """Return the letter of a pane that is not just provisional or final."""
    version = reading.version_of(start_ms)
    if version is None:
        return NOT_KEPT
    if version.rebuilding or any(s.from_ms <= start_ms < s.to_ms for s in facts.rebuilding):
        return REBUILDING
    if start_ms < facts.incomplete_before_ms or start_ms < version.complete_from_ms:
        return INCOMPLETE
    return None
