"""What a driver that makes executors may do, and what it shares with them."""

from __future__ import annotations

from chart.manifests import executors, named, of_kind, pods
from weir_chart import golden
from weir_chart.render import Object, Release, Workbench

# What Spark's scheduler asks of the API, as test_executor_pods.py sees it do.
VERBS = {"create", "delete", "deletecollection", "get", "list", "watch"}


def test_the_driver_has_rights_to_pods_of_its_namespace_only(
    renders: dict[str, list[Object]],
) -> None:
    """Its account is its own; of the rights none is a wildcard, and none is to another thing."""
    objects = renders["executors"]
    (role,) = of_kind(objects, "Role")
    (binding,) = of_kind(objects, "RoleBinding")
    account = {"kind": "ServiceAccount", "name": "counts-analytics", "namespace": "weir"}
    having = [
        one.name for one in pods(objects) if one.spec["serviceAccountName"] == account["name"]
    ]

    assert having == ["StatefulSet/counts-analytics"]
    assert (
        named(objects, "ServiceAccount", "counts-analytics")["automountServiceAccountToken"]
        is False
    )
    assert binding["subjects"] == [account]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (rule,) = role["rules"]
    assert (rule["apiGroups"], rule["resources"]) == ([""], ["pods"])
    assert set(rule["verbs"]) == VERBS


def test_a_given_account_gets_no_rights_from_the_chart(bench: Workbench) -> None:
    """Who names the driver's account has given it its rights, and may not be let to give any."""
    values = golden.SETS / "executors-values.yaml"

    objects = bench.objects(Release((values,), sets=("analytics.driverAccount=mine",)))

    (driver,) = (one for one in pods(objects) if one.component == "analytics")
    assert driver.spec["serviceAccountName"] == "mine"
    assert not {one["kind"] for one in objects} & {"Role", "RoleBinding"}


def test_executors_share_what_the_driver_keeps(renders: dict[str, list[Object]]) -> None:
    """They mount the claim of the driver's StatefulSet, which several nodes may have."""
    objects = renders["executors"]
    (executor,) = executors(objects)
    (driver,) = (one for one in pods(objects) if one.component == "analytics")
    (claim,) = driver.owner["spec"]["volumeClaimTemplates"]
    (volume,) = (one for one in executor.spec["volumes"] if "persistentVolumeClaim" in one)
    places = [
        [one["mountPath"] for one in pod.containers()[0]["volumeMounts"] if one["name"] == name]
        for pod, name in ((driver, claim["metadata"]["name"]), (executor, volume["name"]))
    ]

    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert volume["persistentVolumeClaim"]["claimName"] == (
        f"{claim['metadata']['name']}-{driver.owner['metadata']['name']}-0"
    )
    assert places[0] == places[1] == ["/var/weir/state"]


def test_a_changed_template_starts_the_driver_anew(bench: Workbench) -> None:
    """The driver reads the template once: another one must be another revision of its pod."""
    values = golden.SETS / "executors-values.yaml"
    marks = []
    for sets in ((), ("alerts.config.look_bytes=70000000",), ("analytics.executors.cpu=1",)):
        objects = bench.objects(Release((values,), sets=sets))
        (driver,) = (one for one in pods(objects) if one.component == "analytics")
        marks.append(driver.metadata["annotations"])

    assert marks[0] == marks[1]
    assert marks[0] != marks[2]
