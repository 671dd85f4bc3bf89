"""What the functions on user agents mean: names that the lists of ua-parser give them.

Nothing in such a text says where its parts begin, or which of them is true: it is looked up in
some two thousand patterns, which grow every month. So a name is that of a list, and the list is a
package of its own, `ua-parser-builtins`, one release of which each release of Weir is locked to
(docs/decisions/0025). The patterns run as automata, in time that is linear in the text.
"""

from __future__ import annotations

from functools import cache

from ua_parser import (
    OS,
    Device,
    Domain,
    PartialResult,
    Resolver,
    UserAgent,
    load_lazy_builtins,
)
from ua_parser.regex import Resolver as Automata


def browser(text: str) -> str | None:
    """Return what sent a request, such as `Mobile Safari` or `curl`; None if no list knows it."""
    return _family(_found(text, Domain.USER_AGENT).user_agent)


def os(text: str) -> str | None:
    """Return the system that it ran on, such as `iOS` or `Windows`; None if no list knows it."""
    return _family(_found(text, Domain.OS).os)


def device(text: str) -> str | None:
    """Return the device, such as `iPhone`, or `Spider` for a robot; None if no list knows it."""
    return _family(_found(text, Domain.DEVICE).device)


def _found(text: str, domain: Domain) -> PartialResult:
    # Half of a pair of UTF-16, which Python's texts may hold, is no character to the automata.
    return _resolver()(text.encode(errors="replace").decode(), domain)


def _family(part: UserAgent | OS | Device | None) -> str | None:
    return None if part is None else part.family


# Made of the patterns in a fifth of a second, and only where somebody asks.
@cache
def _resolver() -> Resolver:
    return Automata(load_lazy_builtins())
