"""The whole stack: start it, see how it is, stop it.

Starting is the same after a clean stop, after a crash of anything, and when half of
it runs already: what runs is left alone, what does not is started. Kafka and Redis
come first, then all services at once; each waits by itself for what it needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import psutil

from weir_local import ports
from weir_local.home import Home
from weir_local.kafka import Broker
from weir_local.process import Part, PartError
from weir_local.readiness import Readiness, Say
from weir_local.redis import RedisServer
from weir_local.services import Service, addresses, probe, services
from weir_local.topics import TOPICS
from weir_local.waiting import wait_until

CORE = ("kafka", "redis", "ingest", "panes", "alerts", "dashboard")
# Those that serve clients; the panes job only follows them.
FRONT = ("ingest", "dashboard")
DEMO = (*CORE, "feeder")
KEY_TIMEOUT_S = 30.0
MIN_DISK_BYTES = 1_000_000_000
MIN_MEMORY_BYTES = 1_500_000_000
LOG_LIMIT_BYTES = 64_000_000


class Stack:
    """Kafka, Redis and the services of one home."""

    def __init__(self, home: Home) -> None:
        """Prepare the home's folders and secrets; nothing is started yet."""
        home.prepare()
        self.home = home
        known = home.ports
        self.broker = Broker(
            home.folder / "kafka",
            port=known["kafka"],
            controller_port=known["kafka controller"],
        )
        self.redis = RedisServer(home.folder / "redis", port=known["redis"], durable=True)
        self.services: dict[str, Service] = services(home)
        self.parts: dict[str, Part] = {
            "kafka": self.broker.part,
            "redis": self.redis.part,
            **{name: service.part for name, service in self.services.items()},
        }

    def start(
        self,
        names: tuple[str, ...] = CORE,
        say: Say = lambda _: None,
        *,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Start what of `names` does not run, and return when all of it is ready.

        Args:
            names: Parts, of `DEMO`.
            say: Told each step, with its time.
            meanwhile: Called when ingest and dashboard serve; the panes job, which is
                the slowest to start, may not yet.

        Raises:
            PartError: If a port is taken, space or memory is missing, or a part ended
                or was not ready in time. Says which, why, and what to do.
        """
        self.check_room()
        self.check_ports(names)
        self.home.write_env(addresses(self.home))
        readiness = Readiness(self.parts, self.is_ready, self.doing, say)
        self.launch("redis")
        self.launch("kafka")
        readiness.wait(("redis", "kafka"))
        self.broker.create_topics(TOPICS)
        for name in names:
            self.launch(name)
        readiness.wait(tuple(name for name in FRONT if name in names))
        if set(FRONT) <= set(names):
            wait_until(self._key_is_known, timeout_s=KEY_TIMEOUT_S, what="the API key accepted")
        meanwhile()
        readiness.wait(tuple(n for n in names if n in self.services and n not in FRONT))

    def launch(self, name: str) -> None:
        """Start one part without waiting for it; do nothing if it runs."""
        limit_log(self.parts[name])
        if name == "kafka":
            self.broker.launch()
        elif name == "redis":
            self.redis.launch()
        else:
            self.parts[name].start()

    def is_ready(self, name: str) -> bool:
        """Return whether a part runs and does its work."""
        if self.parts[name].pid() is None:
            return False
        if name == "kafka":
            return self.broker.serves()
        if name == "redis":
            return self.redis.serves()
        return self.services[name].is_ready()

    def doing(self, name: str) -> str:
        """Return what a part that is not ready says that it is doing; empty if it does not."""
        return self.services[name].doing() if name in self.services else ""

    def running(self) -> list[str]:
        """Return the names of the parts that run."""
        return [name for name, part in self.parts.items() if part.pid() is not None]

    def stop(self, names: Collection[str] = DEMO) -> None:
        """Stop parts cleanly, all by default: first who reads and writes, then the stores."""
        for layers in (("feeder",), ("ingest", "panes", "alerts", "dashboard"), ("redis", "kafka")):
            layer = [name for name in layers if name in names]
            if not layer:
                continue
            with ThreadPoolExecutor(len(layer)) as pool:
                list(pool.map(lambda name: self.parts[name].stop(), layer))

    def _key_is_known(self) -> bool:
        # The first key is an event of the log like any other: each service learns of it
        # a moment after the dashboard wrote it. An empty POST is refused with 400.
        known = self.home.ports
        bearer = {"Authorization": f"Bearer {self.home.api_key()}"}
        seen = (
            probe(known["dashboard"], "/api/v1/status", headers=bearer),
            probe(known["ingest"], "/v1/events", method="POST", headers=bearer),
        )
        return HTTPStatus.UNAUTHORIZED not in seen and 0 not in seen

    def check_ports(self, names: tuple[str, ...]) -> None:
        """Do nothing if each port is free or held by the part that it belongs to.

        Raises:
            PartError: If another program listens on one; names port, use and setting.
        """
        for use, port in self.home.ports.by_use.items():
            name = use.split()[0]
            if name in names and self.parts[name].pid() is None and not ports.is_free(port):
                msg = (
                    f"port {port} ({use}) must be free, found {ports.listener(port)} there; "
                    "stop it, or choose other ports, such as `WEIR_PORT_BASE=9080 make up`"
                )
                raise PartError(msg)

    def check_room(self) -> None:
        """Do nothing if there is room on the disk and in memory for a start.

        Raises:
            PartError: If not; says how much there is and how much is needed.
        """
        free = shutil.disk_usage(self.home.folder).free
        if free < MIN_DISK_BYTES:
            msg = (
                f"{self.home.folder} must have {MIN_DISK_BYTES / 1e9:g} GB free, "
                f"found {free / 1e9:.1f} GB; free some space on its disk"
            )
            raise PartError(msg)
        available = psutil.virtual_memory().available
        runs = any(part.pid() is not None for part in self.parts.values())
        if available < MIN_MEMORY_BYTES and not runs:
            msg = (
                f"the stack needs {MIN_MEMORY_BYTES / 1e9:g} GB of free memory, "
                f"found {available / 1e9:.1f} GB; close other programs"
            )
            raise PartError(msg)


def limit_log(part: Part) -> None:
    """Keep a part's log from filling the disk: beyond 64 MB it moves to `.1` and begins anew.

    It is copied and emptied in place, since the process goes on writing to it.
    """
    try:
        if part.log_path.stat().st_size > LOG_LIMIT_BYTES:
            shutil.copyfile(part.log_path, part.log_path.with_suffix(".log.1"))
            part.log_path.open("w").close()
    except FileNotFoundError:
        return
