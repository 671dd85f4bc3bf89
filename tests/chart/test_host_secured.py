"""The rendered pods run where Kafka takes nobody without a certificate, as with Strimzi."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chart.host import HostCluster, HostPod
from chart.manifests import secrets_of
from secured import SecuredBroker, secured_broker, users
from weir_chart.render import Object, Release, Workbench
from weir_local.repository import ROOT

VALUES = ROOT / "infra" / "kubernetes" / "strimzi" / "values.yaml"
BOOTSTRAP = "events-kafka-bootstrap:9093"
CLIENTS = ("topics", "ingest", "analytics", "alerts", "dashboard")


def secret(name: str, **files: Path) -> Object:
    """Return a Secret with the contents of files."""
    data = {
        key.replace("_", "."): base64.b64encode(path.read_bytes()).decode()
        for key, path in files.items()
    }
    return {"kind": "Secret", "metadata": {"name": name}, "data": data}


def as_strimzi(broker: SecuredBroker) -> list[Object]:
    """Return the Secrets that Strimzi makes: the brokers' CA, and a certificate for each user."""
    found = [secret("events-cluster-ca-cert", ca_crt=broker.authority.certificate)]
    for name in users():
        certificate, key = broker.authority.client(name)
        found.append(secret(name, user_crt=certificate, user_key=key))
    return found


@pytest.fixture(scope="module")
def cluster(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    """Return an installation with the values for Strimzi, every pod of it ready."""
    folder = tmp_path_factory.mktemp("host")
    one = ("topics.config.replication_factor=1", "topics.config.min_insync_replicas=1")
    objects = bench.objects(Release((VALUES,), sets=one))
    with secured_broker(folder) as broker:
        names = {BOOTSTRAP: broker.by_certificate}
        cluster = HostCluster([*objects, *as_strimzi(broker)], folder, names)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.kill()


def output(pod: HostPod) -> str:
    """Return what the process of a pod wrote."""
    return pod.part.log_path.read_text()


@pytest.mark.stack
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address only")
def test_the_pods_run(cluster: HostCluster) -> None:
    """Every pod gets ready by its own certificate, and the test pod sees its events counted."""
    check = cluster.pod("check")

    assert check.finish() == 0, output(check)
    assert "passed: 3 events counted, 1 duplicate told apart" in output(check)
    for component in CLIENTS:
        pod = cluster.pod(component)
        asked = secrets_of(pod.workload.spec)
        assert {"events-cluster-ca-cert", f"weir-kafka-{component}"} <= asked
        assert "AUTHORIZATION" not in output(pod).upper(), component
        assert "PRIVATE KEY" not in output(pod), component
        assert not pod.unused(), component
