"""Fixtures for every test: a real Kafka, a real Redis, a free port, the seed of the run.

Both servers are started once a session, in a temporary folder on free ports, and only
if a test asks for them. Under a failure of a test that draws by the seed stands what repeats it.
"""

from __future__ import annotations

import os
import re
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import redis as redis_client
from confluent_kafka import Producer
from weir.topics import Topic
from weir_local import ports
from weir_local.kafka import Broker
from weir_local.redis import RedisServer
from weir_local.seeds import repetition, seed_of_run
from weir_local.testing import running_broker
from xdist.scheduler.loadscope import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Any

# CI draws the same examples for the same code, so that a red run can be repeated; on a
# desk every run draws new ones and looks further. No deadline: a busy machine is no fault.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("desk", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")

SEED = seed_of_run()
# What else a run can be told, by whose tests.
KNOBS = (
    *("WEIR_PACE", "WEIR_KILLS", "WEIR_STARTS", "WEIR_EVENTS", "WEIR_OLD_S", "WEIR_AWAY_S"),
    *("WEIR_SERIES", "WEIR_SILENCE_S", "WEIR_DRAWN_LOGS"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Turn SIGTERM into Ctrl-C, so that a run that is cut short stops its servers too.

    A shell starts what runs in the background with SIGINT ignored, and children inherit that.
    """
    if config.getoption("verbose") > 0:
        config.pluginmanager.register(AtOnce(config))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A JVM that lives for seconds: what the second compiler costs it does not get back. A
    # driver's start takes 13 CPU-seconds so, 25 without.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


class AtOnce:
    """Says why a test failed when it does, not at the end: some runs take hours."""

    def __init__(self, config: pytest.Config) -> None:
        """Write where the run writes."""
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the reason of a failure; of the processes of xdist, the one that tells."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter:
            reporter.write_line(f"\n{report.nodeid}, {report.when}:\n{report.longreprtext}")


class Apart(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process a file at a time, and all that share the stack to one of them.

    What a file's fixtures start, and the stack, are slow to start. xdist's own groups are told
    by the ids of tests, which pytest 9.2 does not let it change: each test went its own way.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "stack" if shares_stack(self.config.rootpath / path) else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Apart | None:
    """Return who says which process runs what, where tests run a file at a time."""
    return Apart(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, the shared stack first: what is short fills the end of a run."""
    items.sort(key=lambda item: _rank(item.path))


@cache
def _rank(path: Path) -> int:
    if shares_stack(path):
        return 0
    starts = re.findall(r"mark\.(stack|spark)\b", path.read_text())
    return 1 if "stack" in starts else 2 if starts else 3


@cache
def shares_stack(path: Path) -> bool:
    """Return whether tests of a file use the stack that all tests of a session share."""
    return path.suffix == ".py" and _TAKES_STACK.search(path.read_text()) is not None


_TAKES_STACK = re.compile(r"def test_\w+\([^)]*\bstack: ")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say under a failure of a test that draws by the seed of the run what repeats it."""
    report = yield
    if report.failed and draws(item):
        report.sections.append(repetition(SEED, item.nodeid, KNOBS))
    return report


def draws(item: pytest.Item) -> bool:
    """Return whether a test draws by the seed of the run: not by one that it lists itself."""
    listed = getattr(getattr(item, "callspec", None), "params", {})
    return "seed" in getattr(item, "fixturenames", ()) and "seed" not in listed


@pytest.fixture(scope="session")
def seed() -> int:
    """Return `WEIR_SEED`, else a seed of this run, each time another; a failure prints it."""
    return SEED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which faults could not be tried."""
    for line in not_tried(terminalreporter):
        terminalreporter.write_line(line, red=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End non-zero if a fault could not be tried; of the processes of xdist, the one that tells."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not_tried(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def not_tried(reporter: pytest.TerminalReporter) -> list[str]:
    """Return the tests that `disruption.faults.needs` has left out, each with what is missing."""
    skipped = reporter.stats.get("skipped", ())
    told = ((one.nodeid, str(one.longrepr[2]).removeprefix("Skipped: ")) for one in skipped)
    return [f"{test}: {reason}" for test, reason in told if reason.startswith("not tried, ")]


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return the session's broker, for tests that stop or kill it."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(kafka_broker: Broker) -> str:
    """Return `host:port` of a broker that has Weir's topics.

    The topics are shared by all tests of a session: use own keys, or `new_topic`.
    """
    return kafka_broker.bootstrap


@pytest.fixture
def new_topic(
    kafka_broker: Broker, request: pytest.FixtureRequest
) -> Callable[[str, int, dict[str, str]], str]:
    """Return a function that creates a topic of this test's own and returns its name.

    Call it as `new_topic("events", 4, {})`: what it is for, partitions, settings.
    """
    count = 0

    def create(purpose: str = "topic", partitions: int = 1, config: dict[str, str] = {}) -> str:  # noqa: B006  never written to
        nonlocal count
        count += 1
        test = "".join(c if c.isalnum() else "-" for c in request.node.name)[:120]
        name = f"test.{test}.{purpose}.{count}"
        kafka_broker.create_topics([Topic(name, partitions, config)])
        return name

    return create


@pytest.fixture
def hour_log(kafka: str, new_topic: Callable[..., str]) -> str:
    """Return a topic that keeps an hour, with 10 records in one partition and 30 in the other."""
    topic = new_topic("events", 2, {"retention.ms": "3600000", "retention.bytes": "-1"})
    producer = Producer({"bootstrap.servers": kafka})
    for n in range(40):
        producer.produce(topic, b"x", partition=int(n >= 10))
    producer.flush(10)
    return topic


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return the session's Redis server, for tests that stop or kill it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """Return the address of a Redis server that holds nothing."""
    client = redis_client.Redis.from_url(redis_server.url)
    client.flushall()
    client.close()
    return redis_server.url


@pytest.fixture
def free_port() -> int:
    """Return a local port that nothing listens on."""
    return ports.free_port()
