"""Whether bounds hold in as many trials as is promised, told from a limited number of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

REACH = 0.99
CHANCE = 0.001
# Of one look among those of a whole benchmark, which looks after each run.
CHANCE_OF_A_LOOK = 0.0001


def refuted(held: int, trials: int, share: float = REACH, chance: float = CHANCE) -> bool:
    """Tell whether a share can hardly be true, seeing that so many trials held.

    Args:
        held: How many did.
        trials: Of how many.
        share: Of trials that would hold in the long run.
        chance: How seldom a share that is true may be taken for none.

    Returns:
        Whether as many misses, or more, come by chance more seldom than that.
    """
    misses, term, fewer = trials - held, share**trials, 0.0
    for n in range(misses):
        fewer += term
        term *= (trials - n) / (n + 1) * (1 - share) / share
    return 1 - fewer < chance


@dataclass
class Estimates:
    """What became of all estimates that one contestant gave in a benchmark, by kind.

    A trial is known by a name, and the same trial again is no other one: a distinct count of
    the same events is the same number in every run, however often it is asked.
    """

    held: dict[str, dict[Hashable, bool]] = field(default_factory=dict)

    def note(self, kind: str, trial: Hashable, *, held: bool) -> None:
        """Take in one estimate, and whether it was within the promised bound."""
        self.held.setdefault(kind, {})[trial] = held

    def count(self, kind: str) -> int:
        """Return how many trials of a kind there are."""
        return len(self.held.get(kind, {}))

    def wrong(self) -> str | None:
        """Say of which kind too few are within their bound; None if of none."""
        for kind, trials in self.held.items():
            held = sum(trials.values())
            if refuted(held, len(trials), chance=CHANCE_OF_A_LOOK):
                return (
                    f"{kind} must be within its bound in {REACH:.0%} of trials, was in {held}"
                    f" of {len(trials)}"
                )
        return None
