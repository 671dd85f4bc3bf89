"""A real Kafka broker (KRaft, one node) as a local process.

The broker's jars come from Maven, pinned in `infra/local/jars.lock`. It listens on
the loopback interface only and keeps its log in the folder it is given: what was
acknowledged is there again after a crash of the process.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from weir_local import ports
from weir_local.prerequisites import java_command
from weir_local.process import Part, PartError
from weir_local.repository import KAFKA_CLASSES, KAFKA_JARS, KAFKA_LOGGING
from weir_local.server import Server
from weir_local.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Set
    from pathlib import Path

    from weir.topics import Topic

# A laptop's broker holds few partitions: measured ready in 2 s with 205 MB.
HEAP = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC")
# An archive of classes that does not fit is left unused; that is no news.
QUIET = ("-Xlog:cds*=off", "-Xlog:class+path=off")


def find_java() -> str:
    """Return the path of `java`: that of JAVA_HOME, if it is set, else the one on PATH.

    Raises:
        PartError: If there is none.
    """
    found = shutil.which(java_command())
    if found is None:
        msg = (
            f"java must be version 17 or newer, found none at {java_command()}; "
            "install a JDK; JAVA_HOME, if set, must name it"
        )
        raise PartError(msg)
    return found


class Broker(Server):
    """One broker with its log in a folder."""

    def __init__(self, folder: Path, *, port: int = 0, controller_port: int = 0) -> None:
        """Prepare it, as `Server` says.

        Args:
            folder: Where log, settings and output go.
            port: Where clients connect; 0 takes a free one.
            controller_port: Where the broker talks to itself; 0 takes a free one.
        """
        super().__init__(folder, port)
        self._controller_port = controller_port or ports.free_port()

    @property
    def bootstrap(self) -> str:
        """Return `host:port` for clients."""
        return f"{ports.HOST}:{self.port}"

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create those topics that do not exist yet, and return when they do."""
        create_topics(self.bootstrap, topics)

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _log_dir(self) -> Path:
        return self.folder / "data"

    def serves(self) -> bool:
        """Return whether the broker answers a client now."""
        if not ports.answers(self.port):
            return False
        try:
            _admin(self.bootstrap).list_topics(timeout=2)
        except KafkaException:
            return False
        return True

    def _part(self) -> Part:
        tmp = f"-Djava.io.tmpdir={self._tmp}"
        command = [find_java(), *_jvm_options(), tmp, "kafka.Kafka", str(self._settings)]
        return Part("kafka", command, self.folder)

    @property
    def _tmp(self) -> Path:
        return self.folder / "tmp"

    def _prepare(self) -> None:
        """Write the settings, and format the log the first time."""
        _check_jars()
        if self.part.pid() is None:
            # What a broker that was killed had unpacked: each left it where nobody looked.
            shutil.rmtree(self._tmp, ignore_errors=True)
        self._tmp.mkdir(exist_ok=True)
        told = self._server_settings()
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        if not (self._log_dir / "meta.properties").exists():
            self._format()

    def _server_settings(self) -> dict[str, str]:
        """Return what stands in `server.properties`."""
        return _server_settings(self._log_dir, self.port, self._controller_port)

    def _cluster_id(self) -> str:
        """Return the id of the cluster that the log is formatted for: one of its own."""
        # One of Kafka's own ids: 16 random bytes as base64url without padding.
        return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def _format(self) -> None:
        tool = [
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={self._cluster_id()}",
            "-c",
            str(self._settings),
        ]
        done = subprocess.run(  # noqa: S603  the command is ours
            [find_java(), *_jvm_options(), *tool], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
            msg = (
                f"kafka could not format {self._log_dir}: {lines[-1]}; free space, or `make reset`"
            )
            raise PartError(msg)


def create_topics(bootstrap: str, topics: Iterable[Topic]) -> None:
    """Create those topics that do not exist yet, and return when clients see them.

    An existing topic is left as it is.

    Raises:
        PartError: If the broker refused one; names it.
    """
    admin = _admin(bootstrap)
    wanted = {topic.name: topic for topic in topics}
    new = [
        NewTopic(t.name, num_partitions=t.partitions, replication_factor=1, config=dict(t.config))
        for t in wanted.values()
    ]
    for name, future in admin.create_topics(new, operation_timeout=30).items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                msg = f'kafka refused the topic "{name}": {error.args[0].str()}'
                raise PartError(msg) from error
    wait_until(
        lambda: _lead(admin, wanted.keys()),
        timeout_s=30,
        what=f"the topics {', '.join(sorted(wanted))}",
        every_s=0.1,
    )


def _lead(admin: AdminClient, names: Set[str]) -> bool:
    """Return whether the broker leads every partition: one just made is known before that."""
    known = admin.list_topics(timeout=5).topics
    if not names <= known.keys():
        return False
    ends = {
        TopicPartition(name, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for name in names
        for number in known[name].partitions
    }
    try:
        for found in admin.list_offsets(ends, request_timeout=5).values():
            found.result()
    except KafkaException:
        return False
    return True


def _admin(bootstrap: str) -> AdminClient:
    # log_level 0: while the broker starts, refused connections are no news.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _check_jars() -> None:
    if not any(KAFKA_JARS.glob("kafka_2.13-*.jar")):
        msg = f"the broker's jars must be in {KAFKA_JARS}, found none; run `make setup`"
        raise PartError(msg)


def _jvm_options() -> list[str]:
    # Kafka 4.2 probes for a newer Java and logs it; nothing else is special.
    logging = f"-Dlog4j2.configurationFile={KAFKA_LOGGING}"
    # Where the archive is of other jars or another Java, classes come from the jars, as without.
    archive = [f"-XX:SharedArchiveFile={KAFKA_CLASSES}", *QUIET] if KAFKA_CLASSES.exists() else []
    return [*HEAP, *archive, "-Djava.awt.headless=true", logging, "-cp", f"{KAFKA_JARS}/*"]


def _server_settings(log_dir: Path, port: int, controller_port: int) -> dict[str, str]:
    """Return the settings of a one-node broker.

    The topics of the broker's own get one partition each: 50 of them, the default,
    are opened one by one at each start. Nothing creates a topic by naming it.
    """
    client, controller = f"{ports.HOST}:{port}", f"{ports.HOST}:{controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{client},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{client}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "false",
        "log.message.timestamp.type": "LogAppendTime",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A broker that was killed is let in again when its old lease is over: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "1000",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }
