"""Whose fault it is that no plan can be made of what is counted already.

A plan that was made by one release may fail with the next, or with another Spark. All metrics
are in it, so nobody's would be counted: the versions are halved until those are found that it
fails with. They are left out, and everything else goes on.
"""

from __future__ import annotations

from typing import Final

from weir_analytics.panes.plan import Counted
from weir_analytics.panes.plans import Counting, Plans, first_words

# One failure may be a worker's that died.
TRIES: Final = 2


def at_fault(plans: Plans, counting: Counting, error: Exception) -> dict[int, str]:
    """Return the versions of which no plan can be made, each with what making it said.

    Args:
        plans: Makes them.
        counting: What no plan could be made of.
        error: What making it raised.

    Raises:
        Exception: The error, if Spark makes no plan at all, or one of each version by itself:
            no definition is to blame then.
    """
    try:
        plans.prove()
    except Exception as other:
        raise error from other
    found = _among(plans, counting, counting.versions, first_words(error))
    if not found:
        raise error
    return found


def _among(
    plans: Plans, counting: Counting, versions: tuple[Counted, ...], why: str
) -> dict[int, str]:
    """Return those of some versions, of which together no plan could be made, as `why` says."""
    if len(versions) > 1:
        half = len(versions) // 2
        found: dict[int, str] = {}
        for part in (versions[:half], versions[half:]):
            said = _failure(plans, counting._replace(versions=part))
            if said is not None:
                found |= _among(plans, counting, part, said)
        return found
    for _ in range(1, TRIES):
        again = _failure(plans, counting._replace(versions=versions))
        if again is None:
            return {}
        why = again
    return {one.version.vid: why for one in versions}


def _failure(plans: Plans, counting: Counting) -> str | None:
    try:
        plans.plan_of(counting)
    except Exception as error:  # noqa: BLE001  whatever a definition brings about
        return first_words(error)
    return None
