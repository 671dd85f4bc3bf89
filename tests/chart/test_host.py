"""The rendered pods run: started as they stand in the manifests, on real Kafka and Redis."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from chart.host import HostCluster, HostPod
from weir_chart.render import Release, Workbench
from weir_local.kafka import Broker

DEFINITIONS = """\
definitions:
  10-orders.yaml: |
    kind: metric
    name: orders
    events: {type: shop.order}
"""


@pytest.fixture(scope="module")
def cluster(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    """Return an installation with one definition, every pod of it ready."""
    folder = tmp_path_factory.mktemp("host")
    values = folder / "values.yaml"
    values.write_text(DEFINITIONS)
    broker = Broker(folder / "kafka")
    broker.start()
    cluster = HostCluster(
        bench.objects(Release((values,))), folder, {"weir-kafka:9092": broker.bootstrap}
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()
        broker.kill()


def output(pod: HostPod) -> str:
    """Return what the process of a pod wrote."""
    return pod.part.log_path.read_text()


def refusals(cluster: HostCluster) -> dict[str, int]:
    """Return how often Redis has refused one of its users something."""
    secrets = cluster.pod("analytics").place("/run/weir/secrets")
    client = redis.Redis(
        host=cluster.pod("redis").address,
        username="analytics",
        password=(secrets / "redis_password").read_text(),
    )
    with client:
        told = client.info("stats")
    return {what: told[f"acl_access_denied_{what}"] for what in ("auth", "cmd", "key")}


@pytest.mark.stack
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address only")
def test_the_pods_run(cluster: HostCluster) -> None:
    """Every pod gets ready, the test pod sees its events counted, all end in their grace."""
    apply, check = cluster.pod("apply"), cluster.pod("check")

    assert apply.finish() == 0, output(apply)
    assert "created   metric/orders" in output(apply)
    assert check.finish() == 0, output(check)
    assert "passed: 3 events counted, 1 duplicate told apart" in output(check)
    assert refusals(cluster) == {"auth": 0, "cmd": 0, "key": 0}
    assert all(pod.part.log_path.exists() for pod in cluster.pods)
    assert {pod.workload.name: pod.unused() for pod in cluster.pods if pod.unused()} == {}
    with ThreadPoolExecutor() as pool:
        ends = list(pool.map(HostPod.end, cluster.servers))
    assert all(end.endswith("with exit status 0") for end in ends), ends


def test_what_is_of_no_use_is_told(bench: Workbench, tmp_path: Path) -> None:
    """A mount that no setting names, and probes that were not asked, are named as unused."""
    values = tmp_path / "values.yaml"
    values.write_text(
        "ingest:\n"
        "  extraVolumes: [{name: odd, emptyDir: {sizeLimit: 1Mi}}]\n"
        "  extraVolumeMounts: [{name: odd, mountPath: /opt/odd}]\n"
    )
    cluster = HostCluster(bench.objects(Release((values,))), tmp_path, {})

    assert cluster.pod("ingest").unused() == {
        "/opt/odd",
        "startupProbe",
        "livenessProbe",
        "readinessProbe",
    }
    assert cluster.pod("check").unused() == set()
