"""The chart fits the images: their names, what they run, and what they bring themselves."""

from __future__ import annotations

import re

from chart.host import IMAGE
from chart.manifests import environment, workloads
from weir_chart import schema
from weir_chart.render import Object, read_all
from weir_cli import exits
from weir_ingest.topics import __main__ as topics
from weir_local.repository import ROOT
from weir_service.settings import EXIT_SETTINGS

DOCKERFILES = {path.parent.name: path.read_text() for path in ROOT.glob("services/*/Dockerfile")}
IMAGE_OF = {
    **{name: name for name in ("ingest", "analytics", "dashboard")},
    "alerts": "analytics",
    **dict.fromkeys(("topics", "apply", "check"), "ingest"),
}


def brought_by(image: str) -> set[str]:
    """Return the variables that an image has itself."""
    text = DOCKERFILES[image].rpartition("\nFROM ")[2].replace("\\\n", " ")
    return {name for line in re.findall(r"^ENV (.+)$", text, re.M) for name in _names(line)}


def _names(line: str) -> list[str]:
    return re.findall(r"(\w+)=", line)


def test_every_pod_runs_an_image_that_is_built(default: list[Object]) -> None:
    """Each pod's image is that of a Dockerfile, and one that Skaffold builds by that name."""
    (skaffold,) = read_all((ROOT / "skaffold.yaml").read_text())
    built = {one["image"] for one in skaffold["build"]["artifacts"]}
    own = [one for one in workloads(default) if one.component != "redis"]

    assert built == {f"weir-{name}" for name in DOCKERFILES}
    for one in own:
        image = one.containers()[0]["image"].partition(":")[0]
        assert image == f"ghcr.io/weir/weir-{IMAGE_OF[one.component]}", one.name


def test_arguments_alone_need_an_entrypoint(default: list[Object]) -> None:
    """A pod without a command of its own runs an image that starts what it is told."""
    for one in workloads(default):
        (container,) = one.containers()
        if "command" not in container:
            assert 'ENTRYPOINT ["tini", "--"]' in DOCKERFILES[IMAGE_OF[one.component]], one.name


def test_every_required_setting_is_given(default: list[Object]) -> None:
    """What a service cannot do without comes from the chart, or stands in its image."""
    for one in workloads(default):
        kind = schema.SETTINGS.get(one.component)
        if kind is None:
            continue
        prefix = f"WEIR_{one.component.upper()}_"
        given = set(environment(one.containers()[0])) | brought_by(IMAGE_OF[one.component])
        mounts = {mount["name"] for mount in one.containers()[0].get("volumeMounts", ())}
        # The command that makes topics has secrets only where Kafka asks who comes.
        unused = set() if "secrets" in mounts else {"secrets_dir"}
        needed = {
            f"{prefix}{name.upper()}"
            for name, field in kind.model_fields.items()
            if (field.is_required() or name.endswith("_dir")) and name not in unused
        }

        assert needed <= given, one.name


def test_jobs_are_not_tried_again_in_vain(renders: dict[str, list[Object]]) -> None:
    """A Job fails at once with the exit codes that say that trying again does not help."""
    in_vain = {
        "topics": {EXIT_SETTINGS, topics.EXIT_LESS_THAN_ASKED},
        "apply": {exits.REFUSED, exits.USAGE},
    }
    jobs = [one for one in workloads(renders["dev"]) if one.owner["kind"] == "Job"]

    assert {one.component for one in jobs} == set(in_vain)
    for one in jobs:
        (rule,) = one.owner["spec"]["podFailurePolicy"]["rules"]
        assert rule["action"] == "FailJob"
        assert rule["onExitCodes"]["containerName"] == one.containers()[0]["name"]
        assert set(rule["onExitCodes"]["values"]) == in_vain[one.component]


def test_the_harness_brings_what_the_images_bring() -> None:
    """Pods on this machine are given no variable that their image would not give them."""
    brought = set().union(*map(brought_by, DOCKERFILES))

    assert {name for name in IMAGE if name.startswith("WEIR_")} <= brought
