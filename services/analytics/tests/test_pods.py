"""What a driver whose executors are pods must be told, and what it then tells Spark."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic import ValidationError
from weir_analytics.panes.pods import pods_config
from weir_analytics.panes.session import (
    CONNECTOR,
    EXECUTOR_LOGS,
    session_config,
    source_options,
)
from weir_analytics.settings import Settings

MASTER = "k8s://https://kubernetes.default.svc:443"


def settings(folder: Path, **told: object) -> Settings:
    """Return the settings of a driver in a pod, as a chart gives them."""
    (folder / "spark_secret").write_text("not to be guessed")
    (folder / "pod.yaml").write_text("kind: Pod\n")
    given = {
        "kafka_bootstrap": "kafka:9092",
        "redis_url": "redis://redis:6379/0",
        "state_dir": folder,
        "jars_dir": folder,
        "secrets_dir": folder,
        "master": MASTER,
        "namespace": "numbers",
        "driver_pod": "weir-analytics-0",
        "executor_image": "weir-analytics:1",
        "executor_prefix": "weir",
        "executor_template": folder / "pod.yaml",
    }
    return Settings(**{**given, **told})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local[3]", 3),
        ("local[2,4]", 2),
        ("local-cluster[2,3,1024]", 6),
        (MASTER, 20),
    ],
)
def test_cores_are_those_of_the_master(tmp_path: Path, master: str, cores: int) -> None:
    """Shuffles have a task for each core that counts, wherever the cores are."""
    found = settings(tmp_path, master=master, executor_instances=5, executor_cores=4)

    assert found.cores == cores


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    """A driver for pods without their namespace, image and secret names each of them."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValidationError) as refusal:
        settings(tmp_path, namespace="", executor_image="", secrets_dir=tmp_path / "empty")

    faults = {one["loc"][0]: one["msg"] for one in refusal.value.errors()}
    missing = f"Value error, must be set while master is {MASTER}, got nothing"
    assert faults.pop("driver_port").endswith(
        "folder with a file spark_secret that is not empty, found none: " + str(tmp_path / "empty")
    )
    assert faults == {"namespace": missing, "executor_image": missing}


def test_a_template_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Spark would say so after the JVM's start only."""
    with pytest.raises(ValidationError, match="must be the file of a pod, found none: /nowhere"):
        settings(tmp_path, executor_template=Path("/nowhere"))


def test_a_driver_alone_needs_none_of_it(tmp_path: Path) -> None:
    """With a local master nothing of pods has to be told."""
    nothing = dict.fromkeys(("namespace", "driver_pod", "executor_image", "executor_prefix"), "")

    alone = settings(
        tmp_path, master="local[2,4]", executor_template=None, secrets_dir=None, **nothing
    )

    assert not alone.in_pods


def test_spark_is_told_of_pods(tmp_path: Path) -> None:
    """Names fit into a label, sizes are the settings', and strangers are kept out."""
    longest = settings(tmp_path, executor_prefix="n" * 40, executor_instances=3)

    told = pods_config(longest, "0a1b2c")

    assert len(told["spark.kubernetes.executor.podNamePrefix"]) == 47
    assert told["spark.kubernetes.executor.podNamePrefix"].endswith("n-0a1b2c")
    assert told["spark.executor.instances"] == "3"
    assert told["spark.kubernetes.namespace"] == "numbers"
    assert told["spark.authenticate"] == told["spark.network.crypto.enabled"] == "true"
    assert told["spark.authenticate.secret.file"] == f"{tmp_path}/spark_secret"


def test_a_silent_executor_is_given_up_within_a_minute(tmp_path: Path) -> None:
    """Spark refuses to look more seldom than it waits; some beats may be lost before it acts."""
    told = pods_config(settings(tmp_path), "0a1b2c")

    timeout_s, look_s, beat_s = (
        int(told[name].removesuffix("s"))
        for name in (
            "spark.network.timeout",
            "spark.network.timeoutInterval",
            "spark.executor.heartbeatInterval",
        )
    )
    assert timeout_s + look_s + beat_s <= 45
    assert look_s <= timeout_s
    assert 3 * beat_s <= timeout_s


def test_a_slow_broker_has_more_time_than_an_executor(tmp_path: Path) -> None:
    """Spark's connector takes the patience with executors for its own unless told otherwise."""
    options = source_options(settings(tmp_path), "earliest")

    assert options["kafkaConsumer.pollTimeoutMs"] == "120000"


def test_executors_log_as_the_package_says(tmp_path: Path) -> None:
    """Their JVM is given the file of the package, which is there, beside its other options."""
    for jar in CONNECTOR:
        (tmp_path / jar.replace("*", "1")).touch()

    options = session_config(settings(tmp_path))["spark.executor.extraJavaOptions"].split()

    assert EXECUTOR_LOGS in options
    assert "-XX:+UseParallelGC" in options
    assert Path(urlsplit(EXECUTOR_LOGS.split("=")[1]).path).is_file()


def test_a_prefix_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """One character more, and the name of an executor is no label any more."""
    with pytest.raises(ValidationError, match="at most 40 characters"):
        settings(tmp_path, executor_prefix="n" * 41)
