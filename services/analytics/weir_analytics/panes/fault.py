"""Whose fault it is that what is counted already cannot be counted any more.

A plan that was made by one release may fail with the next, or with another Spark; and a version
may fail with a record that comes today. All metrics are in one plan, so nobody's would be counted:
the versions are halved until those are found that it fails with. They are left out, and everything
else goes on.

A log or a store that does not answer is no version's failure. It may fail one half and not the
other, as an old part of the log does now and then; so a search that meets such a failure ends.
"""

from __future__ import annotations

from typing import Final, TypeVar

from weir.commit import Offsets, same_offsets

from weir_analytics.panes.passing import is_outside
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.plans import Counting, first_words
from weir_analytics.panes.trial import Trial

T = TypeVar("T")

# One failure may be a worker's that died.
TRIES: Final = 2


def at_fault(trial: Trial, counting: Counting, error: Exception) -> dict[int, str]:
    """Return the versions that cannot be counted, each with what trying it said.

    Args:
        trial: Tries.
        counting: What could not be counted.
        error: What that raised.

    Raises:
        Exception: The error, if nothing can be counted at all, or each version by itself: no
            definition is to blame then. Also if the log or the store failed meanwhile: nothing
            is known then.
    """
    prove(trial, counting._replace(versions=()), error)
    found = _among(trial, counting, counting.versions, error)
    if not found:
        raise error
    return found


def _among(
    trial: Trial, counting: Counting, versions: tuple[Counted, ...], error: Exception
) -> dict[int, str]:
    """Return those of some versions that together could not be counted."""
    if len(versions) == 1:
        why = still_fails(trial, counting._replace(versions=versions), (), error)
        return {} if why is None else {versions[0].version.vid: why}
    found: dict[int, str] = {}
    for part in halves(versions):
        failure = _failure(trial, counting._replace(versions=part), error)
        if failure is not None:
            found |= _among(trial, counting, part, failure)
    return found


def halves(suspects: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    """Return the two groups in which to look for whose fault it is, of two or more."""
    half = len(suspects) // 2
    return suspects[:half], suspects[half:]


def still_fails(
    trial: Trial, counting: Counting, base: tuple[Counted, ...], error: Exception
) -> str | None:
    """Return what is said that fails with one version, tried again; None if it can be counted now.

    Args:
        trial: Tries.
        counting: What could not be counted.
        base: The versions in it that are not in doubt.
        error: What that raised.

    Raises:
        Exception: What trying it raised, if nothing can be counted any more meanwhile, or if the
            log or the store failed.
    """
    for _ in range(1, TRIES):
        again = _failure(trial, counting, error)
        if again is None:
            return None
        error = again
    prove(trial, counting._replace(versions=base), error)
    return first_words(error)


def prove(trial: Trial, base: Counting, error: Exception) -> None:
    """Do nothing if all can be counted without the versions in doubt.

    Args:
        trial: Tries.
        base: What is counted without them.
        error: What was raised with them.

    Raises:
        Exception: The error, if it cannot: nobody's definition is to blame then.
    """
    try:
        trial.prove(base)
    except Exception as other:
        raise error from other


def _failure(trial: Trial, counting: Counting, error: Exception) -> Exception | None:
    """Return what trying some versions raised; raise the error if that was none of theirs."""
    try:
        trial.of(counting)
    except Exception as found:
        if is_outside(found):
            raise error from found
        return found
    return None


class Repeats:
    """How often one range of the log has failed, each time begun anew; outlives a driver's lives.

    What passes, such as a Redis that is away, is not worth a search. So one is made when the range
    has failed for the second time, and then each time that it has failed twice as often.
    """

    def __init__(self) -> None:
        self._start: Offsets = {}
        self._times = 0

    def is_due(self, start: Offsets) -> bool:
        """Take note that a range failed; tell whether to look whose fault that is.

        Args:
            start: Where it begins.
        """
        self._times = self._times + 1 if same_offsets(start, self._start) else 1
        self._start = dict(start)
        return is_due(self._times)


def is_due(times: int) -> bool:
    """Tell whether to look whose fault it is that something failed so many times."""
    return times > 1 and times & (times - 1) == 0
