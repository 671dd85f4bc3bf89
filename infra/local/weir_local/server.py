"""A server that others connect to: a part that is up only once it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from weir_local import ports
from weir_local.process import Part, PartError, last_error
from weir_local.waiting import wait_until

READY_TIMEOUT_S = 60.0


class Server(ABC):
    """One server with its files in a folder.

    Attributes:
        folder: Where its files and output go.
        port: Where clients connect.
        part: Its process.
    """

    def __init__(self, folder: Path, port: int) -> None:
        """Prepare a server; nothing is started yet.

        Args:
            folder: Where its files and output go; made if it is missing.
            port: Where clients connect; 0 takes a free one.
        """
        self.folder = folder
        self.port = port or ports.free_port()
        self.part = self._part()

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
        self._prepare()
        self.part.start()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when the server answers a client.

        Raises:
            PartError: If it ended or the time is over.
        """
        what = f"an answer of {self.part.name}"
        try:
            wait_until(self._alive_and_serves, timeout_s=timeout_s, what=what)
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

    @abstractmethod
    def serves(self) -> bool:
        """Return whether the server answers a client now."""

    @abstractmethod
    def _part(self) -> Part:
        """Return the process to run, once folder and port are known."""

    def _prepare(self) -> None:  # noqa: B027  not every server needs something
        """Write what the process needs before it starts."""

    def _alive_and_serves(self) -> bool:
        self.part.check_alive()
        # Whoever took the port first would answer, while ours is about to end for it.
        return self.serves() and self.part.listens(self.port)
