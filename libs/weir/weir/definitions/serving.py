"""Which versions of a metric serve its panes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, Definition


def life_of(definitions: Definitions, tenant: str, name: str) -> dict[int, Definition]:
    """Return the versions of a metric since it was last deleted, by vid, the newest first.

    What was before shares the name and nothing else: it serves no pane, and nobody follows it.
    """
    history = definitions.history(tenant, "metric", name)
    return {one.vid: one for one in takewhile(lambda one: not one.deleted, history)}


def is_in_life(definitions: Definitions, tenant: str, name: str, vid: int) -> bool:
    """Tell whether a version is one of a metric's `life_of`, however long that is."""
    one, place = definitions.by_vid(vid), (tenant, "metric", name)
    ended = definitions.last_deletion(*place)
    return one is not None and one.place == place and (ended is None or vid > ended)


def serving(
    definitions: Definitions,
    tenant: str,
    name: str,
    *,
    serves: Callable[[Activation], bool] = lambda activation: activation.serves,
) -> list[Definition]:
    """Return the versions that serve the panes of a metric, the newest first.

    The newest one that serves, and those that it left panes to. A deletion ends a metric's
    life: no version from before it serves. Some may be unreadable to this release.

    Args:
        definitions: The fold.
        tenant: Whose.
        name: The metric.
        serves: Whether the newest version may be one that is counted like this.
    """
    life, activations = life_of(definitions, tenant, name), definitions.activations
    known = (vid for vid in life if vid in activations)
    at = next((vid for vid in known if serves(activations[vid])), None)
    found: list[Definition] = []
    # Records decide who follows whom: they may go round.
    while at in activations and at in life and len(found) < len(life):
        found.append(life[at])
        at = activations[at].after if activations[at].serves else None
    return found
