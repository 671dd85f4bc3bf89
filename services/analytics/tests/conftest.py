"""Fixtures of the analytics tests: one Spark session for each module that asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
from weir import names
from weir_analytics.panes import arrow_decode
from weir_analytics.panes.session import open_session
from weir_analytics.panes.store import ShardStore
from weir_analytics.settings import Settings
from weir_local.repository import SPARK_JARS

from .exec_proxy import Proxy
from .installation import Installation
from .shard_scene import FENCE, raise_fence, set_mark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of a shard that stands at offset 0 under our fence."""
    found = redis.Redis.from_url(redis_url)
    raise_fence(found, FENCE)
    set_mark(found, {0: 0})
    yield found
    found.close()


@pytest.fixture
def shard(client: redis.Redis, redis_url: str) -> Iterator[ShardStore]:
    """Return a store of that shard."""
    assert client.ping()
    opened = ShardStore(redis_url, 0, timeout_s=5)
    yield opened
    opened.close()


def settings_for(folder: Path, kafka: str = "127.0.0.1:1", redis_url: str = "") -> Settings:
    """Return the settings of a test: state in a folder of its own, ports chosen freely."""
    return Settings(
        kafka_bootstrap=kafka,
        redis_url=redis_url or "redis://127.0.0.1:1/0",
        state_dir=folder,
        jars_dir=SPARK_JARS,
        ops_port=0,
        driver_memory="512m",
        redis_without_aof=True,
    )


@pytest.fixture(params=[False, True], ids=["arrow", "columns"])
def columns(request: pytest.FixtureRequest) -> bool:
    """Return each of the two ways to count: by Python's workers, and by columns of Spark."""
    found: bool = request.param
    return found


@pytest.fixture(params=[10_000, 0], ids=["few_names", "many_names"])
def each_decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode events as if few names were read of them, and as if many were."""
    monkeypatch.setattr(arrow_decode, "FEW_NAMES", request.param)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a session with the settings of the job."""
    with open_session(settings_for(tmp_path_factory.mktemp("spark"))) as session:
        yield session


@pytest.fixture
def installation(
    kafka: str,
    redis_url: str,
    tmp_path: Path,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Installation]:
    """Return an installation of two shards with an empty log and no driver yet."""

    def new_log() -> None:
        monkeypatch.setattr(names, "EVENTS", new_topic("events"))

    monkeypatch.setattr(names, "DEFINITIONS", new_topic("definitions"))
    new_log()
    settings = settings_for(tmp_path, kafka, redis_url).model_copy(update={"shards": 2})
    client = redis.Redis.from_url(redis_url)
    yield Installation(settings, client, new_log)
    client.close()


@pytest.fixture
def proxy(client: redis.Redis) -> Iterator[Proxy]:
    """Return a proxy before the test's Redis."""
    address = client.connection_pool.connection_kwargs
    opened = Proxy((address["host"], address["port"]))
    yield opened
    opened.close()
