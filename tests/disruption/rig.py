"""A stack that can be broken: failpoints, mutants, a proxy in each link, and its log lines."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from disruption.proxy import Proxy
from weir_local import ports
from weir_local.kafka import Broker
from weir_local.process import Part, PartError
from weir_local.stack import CORE
from weir_local.testing import READY_TIMEOUT_S, TestStack

T = TypeVar("T")

HERE = Path(__file__).parent
# How much longer what is waited for may take where others use the same cores; 1 on a free machine.
PACE = float(os.environ.get("WEIR_PACE") or 1)
# With two rigs on two cores what is promised must hold all the same.
KEPT_TO_PACE = 2.0
SERVICES = ("ingest", "panes", "alerts", "dashboard")
# What the driver says where a store or the log was away, or a task of Spark's broke off.
INTERRUPTED = "counting_interrupted"
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
# How the settings of each service that name a store begin.
PREFIX = {name: f"WEIR_{name.upper()}_" for name in SERVICES} | {"panes": "WEIR_ANALYTICS_"}


def promised_s(seconds: float, pace: float = PACE) -> float:
    """Return a bar of the contract: the same for two rigs at a time, longer where others work."""
    return seconds * max(1.0, pace / KEPT_TO_PACE)


class LinkedBroker(Broker):
    """One broker with a listener for each link, which names that link's proxy to clients.

    Attributes:
        links: By link, where the broker listens and where its proxy does.
        more: What its settings say besides.
    """

    def __init__(
        self,
        folder: Path,
        links: dict[str, tuple[int, int]],
        more: Mapping[str, str],
        **where: int,
    ) -> None:
        self.links, self.more = links, more
        super().__init__(folder, **where)

    def _server_settings(self) -> dict[str, str]:
        told = super()._server_settings()
        own = "".join(f",{name}://{ports.HOST}:{own}" for name, (own, _) in self.links.items())
        shown = "".join(f",{name}://{ports.HOST}:{via}" for name, (_, via) in self.links.items())
        protocols = "".join(f",{name}:PLAINTEXT" for name in self.links)
        return {
            **told,
            "listeners": told["listeners"] + own,
            "advertised.listeners": told["advertised.listeners"] + shown,
            "listener.security.protocol.map": told["listener.security.protocol.map"] + protocols,
            "inter.broker.listener.name": "PLAINTEXT",
            **self.more,
        }


class Rig(TestStack):
    """A stack of which any part and any link can be made to fail.

    Attributes:
        seed: By which everything that is random here is chosen.
        chance: Where it comes from.
        links: The proxies by link, such as "panes-kafka" or "panes-redis".
        faults: Folder in which the processes note what they did to themselves.
        mutants: By service, the module of `tests/disruption/mutants` that it runs with.
    """

    __test__ = False

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        links: Iterable[str] = (),
        settings: dict[str, dict[str, str]] | None = None,
        mutants: Mapping[str, str] | None = None,
        kafka: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare a stack; nothing is started yet.

        Args:
            folder: Where everything of it is kept.
            seed: Of this run.
            links: The links that get a proxy: a service, "-", "kafka" or "redis".
            settings: By service, environment that its process gets besides.
            mutants: By service, a mutant; it stays one when it is started again.
            kafka: What the broker's `server.properties` says besides.
        """
        super().__init__(folder)
        self.seed, self.chance = seed, random.Random(seed)  # noqa: S311
        self.faults = folder / "faults"
        self.faults.mkdir()
        self.links: dict[str, Proxy] = {}
        for part, more in (settings or {}).items():
            self._tell(part, more)
        self.mutants = {part: name for part, name in (mutants or {}).items() if name}
        for part in self.mutants:
            self.arm(part)
        self._link(tuple(links), kafka or {})

    def _link(self, links: tuple[str, ...], kafka: Mapping[str, str]) -> None:
        of_kafka: dict[str, tuple[int, int]] = {}
        for link in links:
            part, _, store = link.partition("-")
            own = ports.free_port() if store == "kafka" else self.home.ports["redis"]
            proxy = self.links[link] = Proxy((ports.HOST, own), seed=self.seed)
            via = f"{ports.HOST}:{proxy.port}"
            if store == "kafka":
                of_kafka[f"LINK{len(of_kafka)}"] = (own, proxy.port)
                self._tell(part, {f"{PREFIX[part]}KAFKA_BOOTSTRAP": via})
            else:
                self._tell(part, {f"{PREFIX[part]}REDIS_URL": f"redis://{via}/0"})
        if of_kafka or kafka:
            known = self.home.ports
            broker = LinkedBroker(
                self.home.folder / "kafka",
                of_kafka,
                kafka,
                port=known["kafka"],
                controller_port=known["kafka controller"],
            )
            self.stack.broker, self.stack.parts["kafka"] = broker, broker.part

    def _tell(self, part: str, more: dict[str, str]) -> None:
        found = self.part(part)
        found.env = {**found.env, **more}

    def part(self, name: str) -> Part:
        """Return a part's process."""
        return self.stack.parts[name]

    def start(self, names: tuple[str, ...] = CORE) -> None:
        """Start the parts and return when all are ready."""
        try:
            super().start(names)
        except PartError:
            if PACE == 1:
                raise
            ready = self.stack.is_ready
            self.wait_until(lambda: all(map(ready, names)), "all ready", PACE * READY_TIMEOUT_S)

    def restart(self, name: str, timeout_s: float = PACE * READY_TIMEOUT_S) -> None:
        """Start a part again and return when it is ready."""
        super().restart(name, timeout_s)

    def wait_until(
        self, look: Callable[[], T | None], what: str = "it", timeout_s: float = PACE * 30.0
    ) -> T:
        """Call `look` until it returns something true, and return that."""
        return super().wait_until(look, what, timeout_s)

    # ── faults ──────────────────────────────────────────────────────────────

    def arm(self, part: str, fail: str = "", **more: str) -> None:
        """Have a part's next process carry out an order; "" disarms. A mutant stays one.

        Args:
            part: One of the services.
            fail: `<point>:kill|raise|sleep@n`.
            more: Environment besides, such as that of a library that moves its clock.
        """
        self._tell(
            part,
            {
                "PYTHONPATH": str(HERE),
                "WEIR_FAULTS_DIR": str(self.faults),
                "WEIR_FAIL": fail,
                "WEIR_MUTANT": self.mutants.get(part, ""),
                **more,
            },
        )

    def has_bitten(self, fail: str) -> bool:
        """Return whether an order was carried out: its point was reached."""
        return (self.faults / fail.replace(":", ".").replace("@", ".")).exists()

    def forget(self, fail: str) -> None:
        """Let an order be carried out once more."""
        (self.faults / fail.replace(":", ".").replace("@", ".")).unlink(missing_ok=True)

    def await_end(self, name: str, timeout_s: float = 60.0) -> None:
        """Return once a part's process is gone, and sweep up what it left of its session."""
        self.wait_until(lambda: self.part(name).pid() is None, f"the end of {name}", timeout_s)
        self.kill(name)

    def revive(self) -> list[str]:
        """Start what has ended, as a keeper does; return what that was."""
        ended = [name for name in SERVICES if self.part(name).pid() is None]
        for name in ended:
            self.restart(name)
        return ended

    def stop(self) -> None:
        """Stop every part and every proxy."""
        for proxy in self.links.values():
            proxy.heal()
        super().stop()
        for proxy in self.links.values():
            proxy.close()

    # ── looking ─────────────────────────────────────────────────────────────

    def fresh(self) -> dict[str, Any]:
        """Return what the dashboard says of freshness."""
        found: dict[str, Any] = self.api("GET", "/status").body["fresh"]
        return found

    def lines(self, part: str, event: str = "", level: str = "") -> list[dict[str, Any]]:
        """Return the JSON lines of a part's log, of one event and one level only if asked."""
        found = []
        for text in self.log(part).splitlines():
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if isinstance(line, dict):
                    found.append(line)
        return [
            line
            for line in found
            if event in ("", line.get("event")) and level in ("", line.get("level"))
        ]

    def errors(self) -> Counter[tuple[str, str]]:
        """Return how often each part said what it says of errors only, a second one's too.

        By part and event: lines of level error and critical; `counting_interrupted`, which
        is a warning, since it may pass; and "traceback" for what nobody has caught.
        """
        found: Counter[tuple[str, str]] = Counter()
        for path in sorted(self.home.run.glob("*.log")):
            said = errors_in(path.read_text(errors="replace"))
            found.update({(path.stem, event): n for event, n in said.items()})
        return found


def errors_in(log: str) -> Counter[str]:
    """Return how often a log says what is said of errors only; see `Rig.errors`.

    A traceback that Spark quotes is of a task whose failure the driver tells by itself, and its
    daemon prints one where a worker outlives the JVM that it worked for. One that names the cause
    of another is part of that.
    """
    found: Counter[str] = Counter()
    before, lines = "", log.splitlines()
    for n, text in enumerate(lines):
        if text.startswith("Traceback (most recent call last)"):
            frame = lines[n + 1] if n + 1 < len(lines) else ""
            is_told = before.endswith("from the Python worker:")
            of_daemon = "pyspark/daemon.py" in frame or not frame.startswith("  File")
            is_cause = any(text.startswith(CHAINED) for text in lines[max(0, n - 2) : n])
            found["traceback"] += not (is_told or of_daemon or is_cause)
        before = text
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and (
                line.get("level") in ("error", "critical") or line.get("event") == INTERRUPTED
            ):
                found[str(line.get("event"))] += 1
    return +found
