"""What every pod of every set must be: restricted, bounded, probed, and told only its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from chart.manifests import (
    cores,
    environment,
    mebibytes,
    named,
    of_kind,
    pods,
    secrets_of,
    selects,
)
from promql_parser import parse
from weir import metrics
from weir_chart import golden, schema
from weir_chart.render import CHART, DASHBOARDS, Object, read_all
from weir_local.repository import ROOT

SERVERS = {"ingest", "analytics", "alerts", "dashboard"}
OWN_SECRETS = {
    **{name: {name} for name in SERVERS},
    "redis": {"redis-acl"},
    "topics": set(),
    "apply": {"bootstrap"},
    "check": {"bootstrap"},
}


def test_root_is_read_only(rendered: list[Object]) -> None:
    """No container can write to its image."""
    for one in pods(rendered):
        for container in one.containers():
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, one.name


def test_memory_is_bounded_and_cpu_is_not(rendered: list[Object]) -> None:
    """Each container asks for memory and has a limit of it; none has a limit of CPU."""
    for one in pods(rendered):
        for container in one.containers():
            resources = container["resources"]
            asked = mebibytes(resources["requests"]["memory"])

            assert 0 < asked <= mebibytes(resources["limits"]["memory"]), one.name
            assert "cpu" in resources["requests"], one.name
            assert "cpu" not in resources["limits"], one.name


@pytest.mark.parametrize(
    ("component", "beside_mib"), [("dashboard", 128), ("alerts", 128 + 4 * 50)]
)
def test_what_is_kept_of_panes_leaves_room(
    rendered: list[Object], component: str, beside_mib: int
) -> None:
    """The bounds of panes, the process and those it starts are below the limit of memory."""
    for one in pods(rendered):
        if one.component != component:
            continue
        (container,) = one.containers()
        told = environment(container)
        kept = [int(value) for name, value in told.items() if name.endswith("_BYTES")]
        limit_mib = mebibytes(container["resources"]["limits"]["memory"])

        assert len(kept) == 2
        assert sum(kept) / 2**20 + beside_mib <= limit_mib, one.name


def test_temporary_room_is_bounded(rendered: list[Object]) -> None:
    """Each scratch volume has a limit, and each pod has a /tmp."""
    for one in pods(rendered):
        scratch = [volume for volume in one.spec["volumes"] if "emptyDir" in volume]

        assert all(volume["emptyDir"].get("sizeLimit") for volume in scratch), one.name
        for container in one.containers():
            mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
            assert "/tmp" in mounted, one.name  # noqa: S108  a path in the container


def test_mounts_and_volumes_match(rendered: list[Object]) -> None:
    """Each mount has its volume, each volume is mounted, and no path twice."""
    for one in pods(rendered):
        claims = one.owner["spec"].get("volumeClaimTemplates", [])
        there = {volume["name"] for volume in one.spec["volumes"]}
        there |= {claim["metadata"]["name"] for claim in claims}
        mounts = [mount for container in one.containers() for mount in container["volumeMounts"]]

        assert {mount["name"] for mount in mounts} == there, one.name
        assert len({mount["mountPath"] for mount in mounts}) == len(mounts), one.name


def test_images_are_of_one_version(rendered: list[Object]) -> None:
    """Each image has a tag that is not `latest`, or a digest."""
    for one in pods(rendered):
        for container in one.containers():
            found = re.fullmatch(
                r"[a-z0-9./-]+(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})", container["image"]
            )
            assert found, container["image"]


def test_servers_are_probed_and_jobs_are_not(rendered: list[Object]) -> None:
    """What runs on has all three probes, what ends has none."""
    probes = {"startupProbe", "livenessProbe", "readinessProbe"}
    for one in pods(rendered):
        for container in one.containers():
            assert probes & container.keys() == (probes if one.is_served else set()), one.name


def test_probes_ask_what_the_services_answer(default: list[Object]) -> None:
    """Probes go to the ops port, to paths that the services' code has."""
    code = (ROOT / "libs/service/weir_service/probes.py").read_text()
    answered = set(re.findall(r'Route\("(/\w+)"', code))
    for one in pods(default):
        if one.component not in SERVERS:
            continue
        (container,) = one.containers()
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        prefix = f"WEIR_{one.component.upper()}_"

        assert str(ports["mgmt"]) == environment(container)[f"{prefix}OPS_PORT"]
        for probe, path in (("startup", "livez"), ("liveness", "livez"), ("readiness", "readyz")):
            asked = container[f"{probe}Probe"]["httpGet"]
            assert asked == {"path": f"/{path}", "port": "mgmt"}
            assert asked["path"] in answered


def test_no_secret_is_in_the_environment(rendered: list[Object]) -> None:
    """No variable is read from a Secret, and none holds a credential."""
    for one in pods(rendered):
        for container in one.containers():
            assert "envFrom" not in container
            for variable in container.get("env", []):
                assert "secretKeyRef" not in variable.get("valueFrom", {}), one.name
            assert not re.search(r"://[^/@]*:[^/@]*@", json.dumps(container.get("env", [])))


def test_each_pod_mounts_its_own_secret_only(default: list[Object]) -> None:
    """A pod sees the Secret of its component and no other, readable by its group only."""
    for one in pods(default):
        own = {f"weir-{name}" for name in OWN_SECRETS[one.component]}

        assert secrets_of(one.spec) == own, one.name
        for volume in one.spec["volumes"]:
            for kind in ("secret", "projected"):
                if kind in volume:
                    assert volume[kind]["defaultMode"] == 0o440, one.name


def test_no_variable_comes_twice(rendered: list[Object]) -> None:
    """No container is given a variable twice, which server-side apply refuses."""
    for one in pods(rendered):
        for container in one.containers():
            names = [variable["name"] for variable in container.get("env", [])]
            assert len(set(names)) == len(names), one.name


def test_no_service_links(rendered: list[Object]) -> None:
    """A Service `weir-ingest` must not set WEIR_INGEST_PORT, which is a setting."""
    assert all(one.spec["enableServiceLinks"] is False for one in pods(rendered))


def test_every_variable_is_a_setting(rendered: list[Object]) -> None:
    """What a service is told is a field of its settings class."""
    for one in pods(rendered):
        kind = schema.SETTINGS.get(one.component)
        if kind is None:
            continue
        (container,) = one.containers()
        prefix = f"WEIR_{one.component.upper()}_"
        told = {name for name in environment(container) if name.startswith(prefix)}
        fields = {f"{prefix}{field.upper()}" for field in kind.model_fields}

        assert told
        assert told <= fields, one.name


def test_only_a_driver_of_executors_has_a_token(renders: dict[str, list[Object]]) -> None:
    """Nothing else of Weir speaks to the cluster's API, and nothing else may."""
    for name, objects in renders.items():
        with_token = [one.name for one in pods(objects) if one.spec["automountServiceAccountToken"]]
        rights = {one["kind"] for one in objects if one["apiVersion"].startswith("rbac.")}

        if name.startswith("executors"):
            assert with_token == ["StatefulSet/counts-analytics"]
            assert rights == {"Role", "RoleBinding"}
        else:
            assert with_token == []
            assert rights == set()


def test_selectors_are_on_record(renders: dict[str, list[Object]]) -> None:
    """Selectors are of three labels, which no release may change."""
    for name, objects in renders.items():
        recorded = read_all((golden.GOLDEN / f"{name}.yaml").read_text())
        for one in objects:
            if one["kind"] not in ("Deployment", "StatefulSet"):
                continue
            selector = one["spec"]["selector"]["matchLabels"]
            before = named(recorded, one["kind"], one["metadata"]["name"])

            assert set(selector) == {
                f"app.kubernetes.io/{label}" for label in ("name", "instance", "component")
            }
            assert selector == before["spec"]["selector"]["matchLabels"]


def test_every_service_reaches_its_pods(rendered: list[Object]) -> None:
    """Each Service picks pods, and each of its ports is one of theirs."""
    for service in of_kind(rendered, "Service"):
        picked = [
            one
            for one in pods(rendered)
            if one.is_served and selects(service["spec"]["selector"], one.metadata["labels"])
        ]
        assert picked, service["metadata"]["name"]
        for port in service["spec"]["ports"]:
            for one in picked:
                (container,) = one.containers()
                assert port["targetPort"] in {found["name"] for found in container["ports"]}


def test_public_services_do_not_show_the_ops_port(rendered: list[Object]) -> None:
    """A Service with an address of its own has the port for people only."""
    for service in of_kind(rendered, "Service"):
        if service["spec"].get("clusterIP") != "None":
            assert all(port["targetPort"] != "mgmt" for port in service["spec"]["ports"])


def test_one_driver_with_a_volume_of_its_own(rendered: list[Object]) -> None:
    """The driver is one pod of a StatefulSet; its volume outlives it, and it is not scaled."""
    (driver,) = (one for one in pods(rendered) if one.component == "analytics")
    spec = driver.owner["spec"]

    assert (driver.owner["kind"], spec["replicas"]) == ("StatefulSet", 1)
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }
    for kind in ("HorizontalPodAutoscaler", "PodDisruptionBudget"):
        assert "analytics" not in json.dumps(of_kind(rendered, kind))


def test_budgets_are_where_more_than_one_pod_is_certain(
    renders: dict[str, list[Object]],
) -> None:
    """A budget for one pod would block every drain."""
    found = {
        name: {one["metadata"]["name"] for one in of_kind(objects, "PodDisruptionBudget")}
        for name, objects in renders.items()
    }

    assert found["default"] == found["dev"] == found["minimal"] == set()
    assert found["production"] == {"weir-ingest", "weir-dashboard"}
    assert found["scaled"] == {"numbers-ingest", "numbers-dashboard"}


def test_scaled_deployments_name_no_count(rendered: list[Object]) -> None:
    """Where pods are scaled, an upgrade must not set their number back."""
    for scaler in of_kind(rendered, "HorizontalPodAutoscaler"):
        target = named(rendered, "Deployment", scaler["spec"]["scaleTargetRef"]["name"])
        assert "replicas" not in target["spec"]


def test_an_installation_fits_a_small_cluster(default: list[Object]) -> None:
    """By default everything together asks for at most 1.5 cores and 4.5 GiB, Kafka included."""
    (values,) = read_all((CHART / "values.yaml").read_text())
    asked = [values["kafka"]["controller"]["resources"]["requests"]]
    asked += [
        container["resources"]["requests"]
        for one in pods(default)
        if one.is_served
        for container in one.containers()
    ]

    assert sum(cores(one["cpu"]) for one in asked) <= 1.5
    assert sum(mebibytes(one["memory"]) for one in asked) <= 4.5 * 1024


def test_names_leave_room(rendered: list[Object]) -> None:
    """Names of objects stay short enough for the labels that the cluster makes of them."""
    assert all(len(one["metadata"]["name"]) <= 63 - 11 for one in rendered)


def test_no_object_is_there_twice(rendered: list[Object]) -> None:
    """No two objects of a kind have one name."""
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered]
    assert len(set(names)) == len(names)


def rules(objects: list[Object]) -> list[Object]:
    """Return the alerts of an installation that has them on."""
    found: list[Object] = []
    for one in of_kind(objects, "PrometheusRule"):
        for group in one["spec"]["groups"]:
            found += group["rules"]
    return found


def test_alerts_ask_for_metrics_that_there_are(renders: dict[str, list[Object]]) -> None:
    """Each alert's expression is PromQL over metrics that Weir's services or kubelets have."""
    known = {value for name, value in vars(metrics).items() if name.isupper()}
    found = rules(renders["production"])

    assert len(found) >= 7
    for rule in found:
        parse(rule["expr"])
        asked = set(re.findall(r"\b(?:weir|kubelet)_\w+", rule["expr"]))
        assert asked
        assert {name for name in asked if name.startswith("weir_")} <= known, rule["alert"]


def test_every_alert_has_its_page_in_the_runbook(renders: dict[str, list[Object]]) -> None:
    """The runbook has a heading for each alert, and no other."""
    headings = re.findall(r"^## (\w+)$", (CHART / "RUNBOOK.md").read_text(), re.MULTILINE)

    for name in ("production", "scaled"):
        found = rules(renders[name])
        assert [rule["alert"] for rule in found] == headings
        for rule in found:
            link = rule["annotations"]["runbook_url"]
            assert link.partition("#")[2] == rule["alert"].lower()


@pytest.mark.parametrize("path", sorted((CHART / "templates").rglob("*.yaml")), ids=str)
def test_every_template_is_rendered_by_some_set(
    path: Path, renders: dict[str, list[Object]]
) -> None:
    """No template is without a set of values that makes an object of it."""
    kinds = set(re.findall(r"^kind: (\w+)$", path.read_text(), re.MULTILINE))

    assert kinds <= {one["kind"] for objects in renders.values() for one in objects}


def test_dashboards_are_those_of_the_repository(renders: dict[str, list[Object]]) -> None:
    """The chart carries the dashboards that are used without it; `make chart` copies them."""
    found = {
        name: text
        for one in of_kind(renders["production"], "ConfigMap")
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in one["data"].items()
    }

    assert found == {path.name: path.read_text() for path in DASHBOARDS.glob("*.json")}
    assert len(found) >= 2
