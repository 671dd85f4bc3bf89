"""skaffold.yaml, kind and the chart's own rules: true of images, chart and metrics."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from .dockerfiles import ROOT, SERVICES
from .test_compose import read, schema_check
from .test_monitoring import faults

SKAFFOLD = ROOT / "skaffold.yaml"
KIND = ROOT / "infra/kind"
RULES = ROOT / "charts/weir/templates/monitoring/prometheusrule.yaml"


@pytest.mark.skipif("WEIR_SCHEMAS" not in os.environ, reason="WEIR_SCHEMAS names no folder")
def test_skaffold_fits_its_schema(tmp_path: Path) -> None:
    """By the schema of its API version; a misspelt member is found."""
    schema = Path(os.environ["WEIR_SCHEMAS"]) / "skaffold_v4beta14.json"
    assert schema_check("--schemafile", schema, SKAFFOLD) == ""
    bad = tmp_path / "skaffold.yaml"
    bad.write_text(SKAFFOLD.read_text().replace("tagPolicy:", "tagsPolicy:"))
    assert schema_check("--schemafile", schema, bad) != ""


class TestSkaffold:
    config: dict[str, Any] = read(SKAFFOLD)

    def test_it_builds_the_images_of_the_services(self) -> None:
        """One artifact a service, from the Dockerfile that is there."""
        built = {
            one["image"]: one["docker"]["dockerfile"] for one in self.config["build"]["artifacts"]
        }
        assert built == {f"weir-{name}": f"services/{name}/Dockerfile" for name in SERVICES}

    def test_the_chart_takes_what_it_hands_over(self) -> None:
        """Each value that it sets is one of the chart's, and names an image that it builds."""
        (release,) = self.config["deploy"]["helm"]["releases"]
        values = read(ROOT / release["chartPath"] / "values.yaml")
        assert all((ROOT / path).is_file() for path in release["valuesFiles"])
        templates = release["setValueTemplates"]
        patched = [one["value"] for one in self.config["profiles"][0]["patches"]]
        for key in [*templates, *patched[0], "externalKafka.brokers"]:
            place: Any = values
            for part in key.split("."):
                assert part in place, key
                place = place[part]
        named = {
            name
            for text in templates.values()
            for name in re.findall(r"IMAGE_\w+?_(weir\w+)", text)
        }
        assert named == {f"weir_{name}" for name in SERVICES}
        with_image = {
            name
            for name, block in values.items()
            if isinstance(block, dict)
            and str(block.get("image", {}).get("repository", "")).rpartition("/")[2]
            in {f"weir-{s}" for s in SERVICES}
        }
        assert {f"{name}.image.tag" for name in with_image} <= templates.keys()


class TestKind:
    def test_nodes_are_in_two_zones(self) -> None:
        """What spreads over zones has two to spread over."""
        cluster = read(KIND / "cluster.yaml")
        assert (cluster["kind"], cluster["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
        zones = [
            node.get("labels", {}).get("topology.kubernetes.io/zone") for node in cluster["nodes"]
        ]
        assert zones == [None, "zone-a", "zone-b"]

    def test_its_script_is_one_and_names_what_is_there(self) -> None:
        """The shell can read it, it can be run, and files that it names are in the checkout."""
        script = KIND / "up.sh"
        assert os.access(script, os.X_OK)
        subprocess.run(["sh", "-n", script], check=True)  # noqa: S603, S607  the shell of PATH
        text = script.read_text()
        named = re.findall(r"\b(?:infra|charts|docs)/[\w./-]+\w", text)
        assert [name for name in named if not (ROOT / name).exists()] == []
        (loop,) = re.findall(r"^for name in ([a-z ]+); do", text, re.M)
        assert tuple(loop.split()) == SERVICES

    def test_it_says_what_is_missing(self, tmp_path: Path) -> None:
        """Without an engine it ends before it begins, and names the program."""
        for program in ("dirname", "sh"):
            (tmp_path / program).symlink_to(str(shutil.which(program)))
        done = subprocess.run(  # noqa: S603
            ["/bin/sh", KIND / "up.sh"],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr == "infra/kind/up.sh: docker must be on PATH, found none; install it\n"


def test_the_charts_rules_ask_for_what_there_is() -> None:
    """So do the alerts that the chart installs, with its namespace put in."""
    text = re.sub(r"\{\{-? \$here -?\}\}", 'namespace="weir"', RULES.read_text())
    text = re.sub(r"\{\{.*?\}\}", "weir", text)
    asked = re.findall(r"^\s+expr: (.+)$", text, re.M)
    own = [one for one in asked if "kubelet_" not in one]
    assert len(own) >= 5
    assert {one: found for one in own if (found := faults(one))} == {}
    assert all(promql_parser.parse(one) for one in asked)
