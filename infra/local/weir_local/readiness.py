"""Wait for parts to become ready, and say how it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weir_local.diagnosis import explain
from weir_local.process import Part, PartError

Say = Callable[[str], None]

READY_TIMEOUT_S = 300.0
SAY_EVERY_S = 10.0


@dataclass
class Readiness:
    """Watches parts that are starting.

    Attributes:
        parts: Every part by name.
        is_ready: Whether the part of a name does its work.
        doing: What the part of a name says that it is doing; empty if it does not.
        say: Told each part that is ready, and every 10 s what is waited for.
    """

    parts: Mapping[str, Part]
    is_ready: Callable[[str], bool]
    doing: Callable[[str], str]
    say: Say
    _began_s: float = field(default_factory=time.monotonic)
    _said_s: float = field(default_factory=time.monotonic)

    def wait(self, names: tuple[str, ...]) -> None:
        """Return when all of `names` are ready.

        Raises:
            PartError: If one ended or the time is over; says which and why.
        """
        pending = list(names)
        while pending:
            for name in list(pending):
                if self._look(name):
                    pending.remove(name)
            if pending:
                self._reassure(pending)
                time.sleep(0.1)

    def _look(self, name: str) -> bool:
        took_s = time.monotonic() - self._began_s
        part = self.parts[name]
        if self.is_ready(name):
            self._tell(f"{name:<10} ready   {took_s:5.1f} s")
            return True
        if part.pid() is None:
            raise PartError(obituary(part))
        if took_s > READY_TIMEOUT_S:
            log = part.log_path
            msg = f"{name} was not ready after {took_s:.0f} s: {explain(part)}; see {log}"
            raise PartError(msg)
        return False

    def _reassure(self, pending: list[str]) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s > SAY_EVERY_S:
            name = pending[0]
            doing = self.doing(name) or "starting"
            self._tell(f"{name:<10} …       {now_s - self._began_s:5.1f} s   {doing}")

    def _tell(self, text: str) -> None:
        self._said_s = time.monotonic()
        self.say(text)


def obituary(part: Part) -> str:
    """Return one sentence on why a part ended and where to read more."""
    return f"{part.ending()}: {explain(part)}; see {part.log_path}"
