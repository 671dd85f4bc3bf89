"""Holds a whole process to the addresses that channels may call.

For code that is not ours and opens its own connections: every connection, of every library
and thread, is seen by the interpreter's audit hooks at the moment it is made, with the
address that it goes to. So neither a redirect nor a name that answers differently a moment
later leads inwards. Local sockets, other programs and files outside the Python installation
are refused too. A hook cannot be taken away again.

What is not seen: the resolver's own questions for a name, and extensions in C that bypass
Python's sockets, which Apprise does not use.
"""

from __future__ import annotations

import mimetypes
import os
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from weir_analytics.alerts.channels.addresses import Address, Addresses, address_of

_SENDING: Final = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))
_PROGRAMS: Final = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
)
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


class BarredError(PermissionError):
    """Something that the guard does not let happen; libraries take it for a failed call."""


class Guard:
    """The hook, and what it has seen.

    Attributes:
        barred: Whether a connection was refused.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._named: set[Address] = set()
        self._readable = _readable()
        self.barred = False

    def install(self) -> None:
        """Begin; there is no end but that of the process."""
        socket.getaddrinfo = self._remembering(socket.getaddrinfo)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _SENDING:
            self._check(args[0], args[1])
        elif event in _PROGRAMS:
            msg = "a channel must not start programs"
            raise BarredError(msg)
        elif event == "open":
            self._check_file(args[0], args[2])

    def _check(self, sock: socket.socket, target: Any) -> None:
        if target is None:
            # Sent on a connection, which was checked when it was made.
            return
        if sock.family in _INTERNET and isinstance(target, tuple):
            try:
                address = address_of(str(target[0]))
            except ValueError:
                # A name here would be looked up again after this check.
                address = None
            if address and (address in self._named or self._addresses.holds(address)):
                return
        self.barred = True
        msg = "a channel must not call this address"
        raise BarredError(msg)

    def _check_file(self, path: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        # Not Path.resolve: it would look at the file.
        name = os.path.normpath(os.path.abspath(os.fsdecode(path)))
        if written or not name.startswith(self._readable):
            msg = "a channel must not open files"
            raise BarredError(msg)

    def _remembering(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a look-up that notes the addresses of hosts that are allowed by name."""

        def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
            found = real(host, *args, **kwargs)
            if isinstance(host, str) and self._addresses.names(host):
                self._named |= {address_of(str(one[4][0])) for one in found}
            return found

        return look_up


def _readable() -> tuple[str, ...]:
    """Return beginnings of the paths that libraries read: code, certificates, types, zones."""
    roots = {sys.prefix, sys.base_prefix, "/etc/ssl", "/usr/lib", "/usr/share"}
    paths = ssl.get_default_verify_paths()
    roots |= {path for path in (paths.cafile, paths.capath) if path}
    packages = {str(Path(entry).resolve()) for entry in sys.path if entry}
    files = {*(str(file) for file in mimetypes.knownfiles), os.devnull}
    return (*sorted(f"{root}{os.sep}" for root in roots | packages), *sorted(files))
