"""D1: an identity is source and id, whoever sent it."""

from __future__ import annotations

from collections.abc import Callable

TARGET = "weir.event:identity_prefix"

Prefix = Callable[[str, str], bytes]


def mutate(original: Prefix) -> Prefix:
    """Return a prefix that all tenants share."""

    def identity_prefix(_tenant: str, source: str) -> bytes:
        return original("", source)

    return identity_prefix
