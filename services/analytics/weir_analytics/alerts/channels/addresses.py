"""Which addresses a channel may call: public ones, and those that the operator allows."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Not public either, though Python's tables do not say so everywhere: protocol assignments,
# addresses of the metadata of clouds, and those of IPv6 that hold one of IPv4.
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",
        "168.63.129.16/32",
        "::/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "2001::/32",
        "fec0::/10",
    )
]


class NotAllowedError(Exception):
    """An address that must not be called."""


class Addresses:
    """What may be called."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """Begin.

        Args:
            allowed: Hosts, addresses and networks that may be called although not public.
        """
        self._hosts = {host.lower() for host in allowed}
        self._networks = [network for host in allowed if (network := _network(host))]

    def names(self, host: str) -> bool:
        """Tell whether a host is allowed by its name, whatever its address is."""
        return host.lower() in self._hosts

    def holds(self, address: Address) -> bool:
        """Tell whether an address may be called, by whatever name."""
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in one for one in self._networks):
            return True
        if address.is_multicast or any(address in one for one in _NEVER):
            return False
        return address.is_global


def address_of(text: str) -> Address:
    """Return the address that a text is, without its zone.

    Raises:
        ValueError: If it is none.
    """
    return ipaddress.ip_address(text.partition("%")[0])


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
