"""Kubernetes takes what is rendered: its schemas, and its own evaluator of pod security."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
from chart.manifests import executors, workloads
from weir_chart import tools
from weir_chart.render import Object

VERSIONS = ("1.30.0", "1.33.0", "1.37.0")
CUSTOM = {
    "HTTPRoute": "httproute_v1.json",
    "ServiceMonitor": "servicemonitor_v1.json",
    "PrometheusRule": "prometheusrule_v1.json",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_are_as_the_api_has_them(rendered: list[Object], version: str) -> None:
    """Every object keeps the API's schema, without a member that it does not know."""
    templates = [one.owner for one in executors(rendered)]
    for one in (*rendered, *templates):
        if one["kind"] not in CUSTOM:
            kubernetes_validate.validate(one, version, strict=True)


def test_an_unknown_member_is_refused(default: list[Object]) -> None:
    """The check sees a member that the API would drop."""
    broken = copy.deepcopy(next(one for one in default if one["kind"] == "Deployment"))
    broken["spec"]["template"]["spec"]["restartPolice"] = "Always"

    with pytest.raises(kubernetes_validate.ValidationError, match="restartPolice"):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


def admission(objects: list[Object]) -> tuple[int, str]:
    """Return the exit code and the findings about pods and custom resources."""
    pods = [
        {"name": one.name, "metadata": _pod_metadata(one.metadata), "spec": one.spec}
        for one in (*workloads(objects), *executors(objects))
    ]
    custom = [{"name": one["kind"], "custom": one} for one in objects if one["kind"] in CUSTOM]
    done = subprocess.run(  # noqa: S603  our own program
        [tools.pod_security()],
        input="\n".join(map(json.dumps, [*pods, *custom])),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _pod_metadata(found: Object) -> Object:
    return {key: found[key] for key in ("labels", "annotations") if key in found}


def test_pods_are_restricted(rendered: list[Object]) -> None:
    """Every pod keeps the standard `restricted`, tests and Jobs included."""
    assert len(list(workloads(rendered))) >= 4

    assert admission(rendered) == (0, "")


@pytest.mark.parametrize(
    ("member", "value", "rule"),
    [
        ("allowPrivilegeEscalation", True, "allowPrivilegeEscalation != false"),
        ("capabilities", {"drop": []}, "unrestricted capabilities"),
        ("runAsUser", 0, "runAsUser=0"),
    ],
)
def test_a_loose_pod_is_refused(
    default: list[Object], member: str, value: object, rule: str
) -> None:
    """The evaluator sees each restriction that a pod lacks."""
    broken = copy.deepcopy(next(one for one in default if one["kind"] == "StatefulSet"))
    broken["spec"]["template"]["spec"]["containers"][0]["securityContext"][member] = value

    code, said = admission([broken])

    assert code == 1
    assert rule in said


@pytest.mark.parametrize(
    ("kind", "place", "fault"),
    [
        ("HTTPRoute", "rules", 'unknown field "spec.rules[0].filter"'),
        ("ServiceMonitor", "endpoints", 'unknown field "spec.endpoints[0].filter"'),
        ("PrometheusRule", "groups", 'unknown field "spec.groups[0].filter"'),
    ],
)
def test_a_misspelt_member_of_a_custom_resource_is_refused(
    renders: dict[str, list[Object]], kind: str, place: str, fault: str
) -> None:
    """Routes and monitors are read into their projects' own types, which see each member."""
    whole = next(one for one in renders["production"] if one["kind"] == kind)
    assert admission([whole]) == (0, "")
    broken = copy.deepcopy(whole)
    broken["spec"][place][0]["filter"] = []

    code, said = admission([broken])

    assert code == 1
    assert fault in said


def test_custom_resources_are_as_their_schemas_have_them(
    renders: dict[str, list[Object]],
) -> None:
    """Routes and monitors keep the schemas of their definitions; WEIR_SCHEMAS names the folder."""
    folder = os.environ.get("WEIR_SCHEMAS")
    if folder is None:
        pytest.skip("WEIR_SCHEMAS names no folder with the schemas of custom resources")
    seen = set()
    for one in (one for objects in renders.values() for one in objects):
        if one["kind"] in CUSTOM:
            schema = json.loads((Path(folder) / CUSTOM[one["kind"]]).read_text())
            jsonschema.validate(one, schema)
            seen.add(one["kind"])

    assert seen == set(CUSTOM)
