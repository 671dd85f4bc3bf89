"""Secrets agree with each other, and a real Redis of the chart's version keeps its users apart."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from chart.manifests import named, of_kind
from weir import names
from weir_chart import tools
from weir_chart.render import Object, Release, Workbench
from weir_local import ports
from weir_local.waiting import wait_until

SERVICES = ("ingest", "analytics", "alerts", "dashboard")


def data_of(objects: list[Object], reader: str) -> dict[str, str]:
    """Return the content of a reader's Secret."""
    data = named(objects, "Secret", f"weir-{reader}")["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def test_readers_share_what_they_must(default: list[Object]) -> None:
    """Ingest and dashboard hash keys alike, and the first key is one key everywhere."""
    ingest, dashboard = data_of(default, "ingest"), data_of(default, "dashboard")

    assert ingest["hash_key"] == dashboard["hash_key"]
    assert len(ingest["hash_key"]) == 64
    assert data_of(default, "bootstrap") == {"bootstrap_key": dashboard["bootstrap_key"]}
    assert re.fullmatch(r"wk_[a-z0-9]{8}_[A-Za-z0-9_-]{32,}", dashboard["bootstrap_key"])


def test_each_service_has_a_password_of_its_own(default: list[Object]) -> None:
    """No two users of Redis share a password, and only hashes of them are in its file."""
    passwords = {name: data_of(default, name)["redis_password"] for name in SERVICES}
    acl = data_of(default, "redis-acl")["users.acl"]

    assert len(set(passwords.values())) == len(SERVICES)
    for name, password in passwords.items():
        assert password not in acl
        assert f"user {name} reset on #{hashlib.sha256(password.encode()).hexdigest()} " in acl


def test_secrets_outlive_the_release(default: list[Object]) -> None:
    """An uninstallation keeps every Secret: the volumes it leaves are of no use without."""
    for one in of_kind(default, "Secret"):
        assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_own_secrets_replace_the_charts(renders: dict[str, list[Object]]) -> None:
    """Where all Secrets are given, the chart makes none."""
    assert of_kind(renders["production"], "Secret") == []


@pytest.fixture(scope="module")
def server(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a Redis of the chart's major version with the chart's users and settings."""
    server = Server(bench.objects(Release()), tmp_path_factory.mktemp("redis"))
    try:
        wait_until(server.answers, timeout_s=30, what="an answer of redis")
        yield server
    finally:
        server.stop()


class Server:
    """A server started with the command, the settings and the users of the rendered pod."""

    def __init__(self, objects: list[Object], folder: Path) -> None:
        """Start it; every path of the pod is one below `folder`."""
        self.objects = objects
        self._clients: list[redis.Redis] = []
        self.port = ports.free_port()
        config = named(objects, "ConfigMap", "weir-redis")["data"]["redis.conf"]
        mounted = {
            "/etc/redis/redis.conf": config.replace("port 6379", f"port {self.port}"),
            "/run/weir/secrets/users.acl": data_of(objects, "redis-acl")["users.acl"],
        }
        for path, text in mounted.items():
            file = folder / path.lstrip("/")
            file.parent.mkdir(parents=True)
            file.write_text(text)
        (folder / "data").mkdir()
        pod = named(objects, "StatefulSet", "weir-redis")["spec"]["template"]["spec"]
        self.container = pod["containers"][0]
        program, *words = self.container["command"]
        assert program == "redis-server"
        command = [f"{folder}{word}" if word.startswith("/") else word for word in words]
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603  our own server
                [tools.redis_server(), *command], stdout=log
            )

    def answers(self) -> bool:
        """Return whether it serves; a server that has ended never will."""
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        return ports.answers(self.port)

    def client(self, user: str, password: str = "") -> redis.Redis:
        """Return a client of one service, by default with the password from its Secret."""
        password = password or data_of(self.objects, user)["redis_password"]
        url = f"redis://{user}@127.0.0.1:{self.port}/0"
        client = redis.Redis.from_url(url, password=password, retry=None)
        self._clients.append(client)
        return client

    def stop(self) -> None:
        """Close every client, and end it."""
        for client in self._clients:
            client.close()
        self.process.terminate()
        self.process.wait(10)


SHARD_KEYS = (
    names.fence_key(0),
    names.token_key(31),
    names.mark_key(0),
    names.outbox_key(2),
    names.pane_key(0, 17, 10, 1_700_000_000),
    names.ids_key(0, 17),
    names.names_key(0, 17),
)
WRITES: dict[str, tuple[str, ...]] = {
    "ingest": (
        names.tail_key("default"),
        names.part_key("ingest", "pod-1"),
        names.used_key("default"),
    ),
    # Of erased subjects the engine deletes the colors that the dashboard gave.
    "analytics": (
        *SHARD_KEYS,
        names.BATCHES,
        names.part_key("panes", "pod-1"),
        names.slots_key("default", "orders"),
    ),
    "alerts": (names.part_key("alerts", "pod-1"),),
    "dashboard": (
        names.part_key("dashboard", "pod-1"),
        names.slots_key("default", "orders"),
        names.session_key("ab12"),
        names.once_key("ab12"),
        names.used_key("default"),
    ),
}
HEARTBEATS = tuple(names.part_key(name, "pod-1") for name in ("ingest", "panes", "alerts"))
READS: dict[str, tuple[str, ...]] = {
    "ingest": (),
    "analytics": (),
    "alerts": (*SHARD_KEYS, names.BATCHES, *HEARTBEATS, names.part_key("dashboard", "pod-1")),
    "dashboard": (*SHARD_KEYS, names.BATCHES, *HEARTBEATS, names.tail_key("default")),
}
ALL_KEYS = sorted({key for keys in (*WRITES.values(), *READS.values()) for key in keys})


def refused(call: Callable[[], object]) -> bool:
    """Return whether the server says that this user may not do this."""
    try:
        call()
    except redis.exceptions.NoPermissionError:
        return True
    return False


@pytest.mark.parametrize("user", SERVICES)
@pytest.mark.parametrize("key", [*ALL_KEYS, "weir:2:batches", "other:1"])
def test_a_service_has_its_own_keys(server: Server, user: str, key: str) -> None:
    """Each service writes its own keys, reads those it follows, and no others."""
    client = server.client(user)
    may_write = key in WRITES[user]

    assert refused(lambda: client.exists(key)) is not (may_write or key in READS[user])
    assert refused(lambda: client.delete(key)) is not may_write


@pytest.mark.parametrize("user", SERVICES)
@pytest.mark.parametrize(
    "command",
    [("CONFIG", "GET", "*"), ("FLUSHALL",), ("KEYS", "*"), ("ACL", "LIST"), ("CLIENT", "LIST")],
    ids=" ".join,
)
def test_no_service_may_rule_the_server(
    server: Server, user: str, command: tuple[str, ...]
) -> None:
    """No service may change settings, empty the store, or list all keys at once."""
    client = server.client(user)

    assert refused(lambda: client.execute_command(*command))  # type: ignore[no-untyped-call]


def test_the_driver_sees_whether_keys_are_evicted(server: Server) -> None:
    """The driver may read the one thing that it refuses to start without."""
    memory = server.client("analytics").info("memory")

    assert memory["maxmemory_policy"] == "noeviction"
    # 60 % of 512 Mi.
    assert memory["maxmemory"] == 307 * 2**20


def test_nobody_comes_in_without_a_name(server: Server) -> None:
    """The user whom clients are without a password is off, and a wrong password is refused."""
    wrong = server.client("ingest", "wrong")

    with redis.Redis(port=server.port) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()
    with pytest.raises(redis.AuthenticationError):
        wrong.ping()


def test_the_probe_sees_a_server_that_serves(server: Server) -> None:
    """The readiness probe's very command succeeds, and its user may do nothing else."""
    shell, option, line = server.container["readinessProbe"]["exec"]["command"]
    here = line.replace("redis-cli", f"{tools.redis_client()} -p {server.port}")

    done = subprocess.run([shell, option, here], check=False)  # noqa: S603  as the kubelet does
    probe = server.client("probe", "none")

    assert done.returncode == 0
    assert refused(lambda: probe.get(names.BATCHES))


def test_the_probe_sees_a_server_that_does_not_serve(server: Server) -> None:
    """Without a server behind the port the probe's command fails."""
    shell, option, line = server.container["readinessProbe"]["exec"]["command"]
    nowhere = line.replace("redis-cli", f"{tools.redis_client()} -p {ports.free_port()}")

    done = subprocess.run([shell, option, nowhere], stderr=subprocess.DEVNULL, check=False)  # noqa: S603

    assert done.returncode != 0
