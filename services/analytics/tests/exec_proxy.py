"""A proxy before Redis that breaks a connection around a transaction, before or behind it."""

from __future__ import annotations

import socket
import threading


class Proxy:
    """A TCP proxy to Redis that can swallow the reply to one EXEC, or break before it."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.lose_next_exec = self.cut_next_exec = False
        self.lost = 0
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._server.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop taking connections."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                front, _ = self._server.accept()
            except OSError:
                return
            back = socket.create_connection(self._target)
            threading.Thread(target=self._pump, args=(front, back), daemon=True).start()

    def _pump(self, front: socket.socket, back: socket.socket) -> None:
        """Carry one request and its replies at a time."""
        with front, back:
            while request := front.recv(1 << 20):
                if self.cut_next_exec and b"EXEC" in request:
                    self.cut_next_exec, self.lost = False, self.lost + 1
                    return
                back.sendall(request)
                reply = back.recv(1 << 20)
                if self.lose_next_exec and b"EXEC" in request:
                    self.lose_next_exec, self.lost = False, self.lost + 1
                    return
                front.sendall(reply)
