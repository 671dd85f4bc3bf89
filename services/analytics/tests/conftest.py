"""Fixtures of the analytics tests: one Spark session for each module that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from weir_analytics.panes.session import open_session
from weir_analytics.settings import Settings
from weir_local.repository import SPARK_JARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings_for(folder: Path, kafka: str = "127.0.0.1:1", redis_url: str = "") -> Settings:
    """Return the settings of a test: state in a folder of its own, ports chosen freely."""
    return Settings(
        kafka_bootstrap=kafka,
        redis_url=redis_url or "redis://127.0.0.1:1/0",
        state_dir=folder,
        jars_dir=SPARK_JARS,
        ops_port=0,
        driver_memory="512m",
    )


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a session with the settings of the job."""
    session = open_session(settings_for(tmp_path_factory.mktemp("spark")))
    yield session
    session.stop()
