"""Words for what an audit did not compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from weir.audited import Bound, Lack, bound_of, compared_in_part, not_compared

WHY: Final = {
    Lack.LEFT_OUT: "there was no room for its panes; ask for fewer metrics at once, or with a"
    " shorter --last",
    Lack.OVERTAKEN: "retention took its panes before they were read; ask with a shorter --last",
}
"""Why nothing of something was compared, and what to do."""

NOT_DRAWN: Final[Mapping[Bound | None, str]] = {
    Bound.LAST: "no pane of it was drawn from the span; ask with a longer --last or a larger"
    " --sample",
    Bound.RETENTION: "no pane of it was drawn from what the log holds whole; ask with a larger"
    " --sample, or later",
    Bound.RECORDS: "no pane of it was drawn from as much of the log as --most-records allows; ask"
    " with more, or without it",
    None: "no pane of it was drawn",
}
"""The same by why the audit does not reach further back."""


def uncompared(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an audit did not compare; nothing of another job, or where it compared all."""
    if "verified" not in outcome:
        return
    missing = not_compared(outcome)
    for lack in dict.fromkeys(missing.values()):
        names = ", ".join(name for name, why in missing.items() if why is lack)
        why = WHY[lack] if lack in WHY else NOT_DRAWN[bound_of(outcome)]
        yield f"nothing of {names} was compared: {why}"
    if outcome["verified"] is None and not missing:
        yield (
            "nothing was compared: there is no event in the panes of the sample, neither in the log"
            " nor in what is served; ask with a longer --last"
        )
    if partly := compared_in_part(outcome):
        yield (
            f"only some panes of {', '.join(partly)} were compared: its `left_out` says for"
            " how many there was no room, its `overtaken` how many retention took"
        )
