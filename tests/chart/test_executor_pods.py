"""Executors as pods: the driver of the rendered manifests makes them, and they count."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import kubernetes_validate
import pytest
from chart.api import Api, Asked
from chart.conftest import SETS
from chart.host import HostCluster, HostPod
from chart.manifests import Workload, executors, named, of_kind
from chart.test_kubernetes import VERSIONS, admission
from weir_chart.render import NAMESPACE, Object, Release, Workbench
from weir_local.kafka import Broker
from weir_local.waiting import wait_until

API = "https://kubernetes.default.svc:443"
STATE = "/var/weir/state"

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere is one loopback address only"),
]


class Cluster:
    """An installation whose executors run as soon as the driver asks for them."""

    def __init__(self, objects: list[Object], folder: Path, kafka: str) -> None:
        """Make every pod's volumes, and the API; start nothing."""
        self.objects, self.folder = objects, folder
        account = named(objects, "StatefulSet", "counts-analytics")["spec"]["template"]["spec"]
        self.api = Api("127.0.0.1", f"token-of-{account['serviceAccountName']}", self.run)
        elsewhere = {"weir-kafka:9092": kafka, API: self.api.url}
        self.host = HostCluster(objects, folder, elsewhere)
        self.executors: dict[str, HostPod] = {}
        driver = self.host.pod("analytics")
        self.api.pods.put("ADDED", _as_pod(driver))

    def run(self, pod: Object) -> Callable[[], int | None]:
        """Start an executor as the kubelet of its node would."""
        name, driver = pod["metadata"]["name"], self.host.pod("analytics")
        # The driver's paths are those of its container, before which its folder stands here.
        inside = json.loads(json.dumps(pod).replace(str(driver.folder), ""))
        found = HostPod(
            Workload(inside, inside["metadata"], inside["spec"]),
            self.folder / name,
            f"{self.host.network}.{100 + len(self.executors)}",
            self.host.names,
        )
        # The claim is the driver's: what one writes, all see.
        found.place(STATE).parent.mkdir(parents=True)
        found.place(STATE).symlink_to(driver.place(STATE))
        found.prepare(self.objects)
        found.part.start()
        self.executors[name] = found
        return lambda: None if found.part.pid() is not None else 1

    def running(self, number: int) -> list[str] | None:
        """Return the names of executors whose processes live, if they are so many."""
        known = list(self.executors.items())  # another thread adds to them
        found = [name for name, one in known if one.part.pid() is not None]
        return found if len(found) == number else None

    @property
    def secret(self) -> str:
        """Return what the driver and its executors know each other by."""
        return (self.host.pod("analytics").place("/run/weir/secrets") / "spark_secret").read_text()

    def kill(self) -> None:
        """End what still runs."""
        self.host.kill()
        for one in self.executors.values():
            one.part.kill()


def _as_pod(driver: HostPod) -> Object:
    metadata = {**driver.workload.metadata, "name": driver.name, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "uid": "4ad9e0b6-6a1f-4a0c-9f8b-2f4b1a6f0d11"},
        "spec": driver.workload.spec,
        "status": {"phase": "Running"},
    }


@pytest.fixture(scope="module")
def cluster(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return an installation with executors, every pod of it ready."""
    folder = tmp_path_factory.mktemp("pods")
    broker = Broker(folder / "kafka")
    broker.start()
    objects = bench.objects(Release((SETS["executors"],)))
    cluster = Cluster(objects, folder, broker.bootstrap)
    try:
        with cluster.api:
            cluster.host.start()
            yield cluster
    finally:
        cluster.kill()
        broker.kill()


def test_executors_count_are_replaced_and_go(cluster: Cluster) -> None:
    """They count what the test pod sends; one that is lost is followed; all end with the driver.

    What the driver asked the cluster for, all that time, is what its Role lets it do, no less.
    """
    check = cluster.host.pod("check")
    first = set(wait_until(lambda: cluster.running(2), timeout_s=60, what="two executors"))

    assert check.finish() == 0, check.part.log_path.read_text()
    cluster.executors[min(first)].part.kill()
    second = set(wait_until(lambda: cluster.running(2), timeout_s=120, what="another executor"))
    assert len(second - first) == 1
    wait_until(
        lambda: min(first) not in cluster.api.pods.found, timeout_s=60, what="the end of the lost"
    )
    assert cluster.host.pod("analytics").end().endswith("with exit status 0")
    wait_until(lambda: cluster.running(0) is not None, timeout_s=30, what="the end of executors")
    assert set(cluster.api.pods.found) == {"counts-analytics-0"}
    (role,) = of_kind(cluster.objects, "Role")
    (rule,) = role["rules"]
    may = {Asked(verb, what, NAMESPACE) for verb in rule["verbs"] for what in rule["resources"]}
    assert cluster.api.asked == may


def test_a_driver_that_was_killed_leaves_none_behind(cluster: Cluster) -> None:
    """The next one deletes what the former made before it asks for its own."""
    driver, pods = cluster.host.pod("analytics"), cluster.api.pods
    driver.runs()
    wait_until(lambda: cluster.running(2), timeout_s=120, what="two executors")
    former = set(pods.found) - {driver.name}
    driver.part.kill()
    wait_until(lambda: cluster.running(0) is not None, timeout_s=60, what="the end of executors")
    seen = len(pods.events)
    assert set(pods.found) == former | {driver.name}

    driver.part.start()
    wait_until(lambda: cluster.running(2), timeout_s=120, what="executors of the next life")

    changes = [(kind, pod["metadata"]["name"]) for kind, pod in pods.events[seen:]]
    first = next(number for number, (kind, _) in enumerate(changes) if kind == "ADDED")
    assert {name for kind, name in changes[:first] if kind == "DELETED"} == former
    assert not former & set(pods.found)
    assert "former_executors_deleted" in driver.part.log_path.read_text()


def test_pods_are_made_as_the_template_has_them(cluster: Cluster) -> None:
    """Spark leaves each restriction, limit and mount, and adds no secret and no right."""
    pod, *_ = cluster.api.created
    (template,) = executors(cluster.objects)
    (made,), (meant,) = pod["spec"]["containers"], template.containers()

    for version in VERSIONS:
        kubernetes_validate.validate(_known(pod), version, strict=True)
    assert admission([pod]) == (0, "")
    assert pod["spec"]["automountServiceAccountToken"] is False
    for part in ("serviceAccountName", "securityContext", "tolerations", "enableServiceLinks"):
        assert pod["spec"][part] == template.spec[part]
    for part in ("name", "image", "securityContext"):
        assert made[part] == meant[part]
    for kind in ("requests", "limits"):
        asked, wanted = made["resources"][kind], meant["resources"][kind]
        assert asked == wanted
    assert {one["mountPath"] for one in made["volumeMounts"]} == {
        one["mountPath"] for one in meant["volumeMounts"]
    }
    assert template.metadata["labels"].items() <= pod["metadata"]["labels"].items()
    assert cluster.secret not in json.dumps(pod)


def test_pods_belong_to_the_driver(cluster: Cluster) -> None:
    """They go with the driver's pod, report to its name, and have names that fit a label."""
    driver = cluster.host.pod("analytics")
    for pod in cluster.api.created[:2]:
        (owner,) = pod["metadata"]["ownerReferences"]
        told = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}

        assert (owner["kind"], owner["name"]) == ("Pod", "counts-analytics-0")
        assert pod["metadata"]["name"].startswith("counts-")
        assert told["SPARK_DRIVER_URL"].endswith(f"@{driver.address}:7078")
        assert "-Dspark.blockManager.port=7079" in told.values()


def _known(pod: Object) -> Object:
    """Return a pod as a cluster stores it: without members that are null."""
    found: Object = json.loads(json.dumps(pod), object_hook=_without_nulls)
    return found


def _without_nulls(found: Object) -> Object:
    return {name: value for name, value in found.items() if value is not None}
