"""Whose fault it is that no plan can be made of what is counted already.

A plan that was made by one release may fail with the next, or with another Spark. All metrics
are in it, so nobody's would be counted: the versions are halved until those are found that it
fails with. They are left out, and everything else goes on.
"""

from __future__ import annotations

from typing import Final, TypeVar

from weir_analytics.panes.plan import Counted
from weir_analytics.panes.plans import Counting, Plans, first_words

T = TypeVar("T")

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
    prove(plans, counting._replace(versions=()), error)
    found = _among(plans, counting, counting.versions, error)
    if not found:
        raise error
    return found


def _among(
    plans: Plans, counting: Counting, versions: tuple[Counted, ...], error: Exception
) -> dict[int, str]:
    """Return those of some versions of which together no plan could be made."""
    if len(versions) == 1:
        why = still_fails(plans, counting._replace(versions=versions), (), error)
        return {} if why is None else {versions[0].version.vid: why}
    found: dict[int, str] = {}
    for part in halves(versions):
        failure = _failure(plans, counting._replace(versions=part))
        if failure is not None:
            found |= _among(plans, counting, part, failure)
    return found


def halves(suspects: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    """Return the two groups in which to look for whose fault it is, of two or more."""
    half = len(suspects) // 2
    return suspects[:half], suspects[half:]


def still_fails(
    plans: Plans, counting: Counting, base: tuple[Counted, ...], error: Exception
) -> str | None:
    """Return what a plan says that fails with one version, tried again; None if it is made now.

    Args:
        plans: Makes it.
        counting: What no plan could be made of.
        base: The versions in it that are not in doubt.
        error: What making it raised.

    Raises:
        Exception: What making it raised, if Spark has stopped making plans meanwhile.
    """
    for _ in range(1, TRIES):
        again = _failure(plans, counting)
        if again is None:
            return None
        error = again
    prove(plans, counting._replace(versions=base), error)
    return first_words(error)


def prove(plans: Plans, base: Counting, error: Exception) -> None:
    """Do nothing if Spark makes the plan without the versions in doubt.

    Args:
        plans: Makes it.
        base: What is counted without them.
        error: What was raised with them.

    Raises:
        Exception: The error, if it does not: nobody's definition is to blame then.
    """
    try:
        plans.prove()
        if base.versions:
            plans.plan_of(base)
    except Exception as other:
        raise error from other


def _failure(plans: Plans, counting: Counting) -> Exception | None:
    try:
        plans.plan_of(counting)
    except Exception as error:  # noqa: BLE001  whatever a definition brings about
        return error
    return None
