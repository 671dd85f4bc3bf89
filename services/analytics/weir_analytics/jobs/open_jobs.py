"""Which jobs the driver has to work on, and in which order. Pure."""

from __future__ import annotations

from weir.definitions.fold import Definitions
from weir.definitions.job import Adopt, Audit, Erase, Job, Replay
from weir.definitions.jobs import KIND, JobAsked


def to_erase(fold: Definitions) -> list[JobAsked]:
    """Return the erasures of which nobody has said yet from where they hold.

    The driver says so with a batch, as with activations; only then are they jobs to work on.
    """
    asked = (
        JobAsked(one, one.readable, None, cancelled=False)
        for one in fold.current(kind=KIND)
        if one.vid not in fold.jobs and isinstance(one.readable, Job)
    )
    return [one for one in asked if isinstance(one.model.do, Erase)]


def open_jobs(fold: Definitions) -> list[JobAsked]:
    """Return the jobs that the driver has to work on, or to end, in the order of that.

    Quick ones, then what is begun; then the tenant's turn whose last job ended first, so
    that a tenant who asks for a thousand delays another by one.
    """
    asked = {
        one.vid: JobAsked(one, one.readable, fold.jobs.get(one.vid), cancelled=False)
        for one in fold.current(kind=KIND)
        if isinstance(one.readable, Job)
    }
    for vid in fold.jobs:
        one = fold.by_vid(vid)
        if vid not in asked and one is not None and isinstance(one.readable, Job):
            asked[vid] = JobAsked(one, one.readable, fold.jobs[vid], cancelled=True)
    found = [one for one in asked.values() if one.open and not _waits_for_a_batch(one)]
    ended = _last_ended(fold)

    def place(one: JobAsked) -> tuple[bool, bool, int, int]:
        turn = ended.get(one.definition.tenant, -1)
        return not is_quick(one), one.report is None, turn, one.definition.vid

    return sorted(found, key=place)


def _last_ended(fold: Definitions) -> dict[str, int]:
    """Return by tenant when its last job ended."""
    ended: dict[str, int] = {}
    for vid, report in fold.jobs.items():
        one = fold.by_vid(vid)
        if one is not None and report.state.final:
            ended[one.tenant] = max(report.at_ms, ended.get(one.tenant, -1))
    return ended


def _waits_for_a_batch(asked: JobAsked) -> bool:
    return isinstance(asked.model.do, Erase) and asked.report is None


def is_quick(asked: JobAsked) -> bool:
    """Tell whether a job is done in no time, and so before all others."""
    return isinstance(asked.model.do, Adopt)


def reads_the_log(asked: JobAsked) -> bool:
    """Tell whether a job takes time and memory that depend on what the log holds."""
    return isinstance(asked.model.do, Audit | Replay)
