"""The chart rendered as an installation would get it, without a cluster.

Kafka's chart is a dependency that comes over the network; Helm renders nothing without it,
also where it is off. It is replaced by an empty one of the same name and version, so
Bitnami's own templates are not rendered here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from weir_local.repository import ROOT

from weir_chart import tools

CHART = ROOT / "charts" / "weir"
DASHBOARDS = ROOT / "infra" / "monitoring" / "grafana" / "dashboards"
NAMESPACE = "weir"
KUBERNETES = "1.33.0"
Object = dict[str, Any]


class RenderError(Exception):
    """Helm refused the chart or its values; the text is what it said."""


@dataclass(frozen=True)
class Release:
    """What is installed.

    Attributes:
        values: Files of values, the last one wins.
        name: Of the release.
        sets: Single values, as on the command line: `kafka.enabled=false`.
        cluster: Settings of a client of the cluster that is asked what is there; None asks none.
    """

    values: tuple[Path, ...] = ()
    name: str = "weir"
    sets: tuple[str, ...] = ()
    cluster: Path | None = None


class Workbench:
    """A copy of the chart with its dependency in place, in a folder of its own."""

    def __init__(self, folder: Path, chart: Path = CHART) -> None:
        """Copy the chart; `folder` must be there and is not emptied afterwards."""
        self.chart = folder / "weir"
        shutil.copytree(chart, self.chart, ignore=shutil.ignore_patterns("charts"))
        (declared,) = read_all((chart / "Chart.yaml").read_text())
        for one in declared["dependencies"]:
            stub = self.chart / "charts" / one["name"]
            stub.mkdir(parents=True)
            words = {"apiVersion": "v2", "name": one["name"], "version": one["version"]}
            # JSON is YAML.
            (stub / "Chart.yaml").write_text(json.dumps(words))

    def lint(self, release: Release) -> str:
        """Return what `helm lint --strict` says.

        Raises:
            RenderError: If it finds a fault.
        """
        return self._helm("lint", "--strict", str(self.chart), *_cluster(), *_options(release))

    def template(self, release: Release) -> str:
        """Return the rendered manifests as text.

        Raises:
            RenderError: If Helm refuses the values.
        """
        words = ("template", release.name, str(self.chart), *_cluster(), *_options(release))
        return self._helm(*words)

    def objects(self, release: Release) -> list[Object]:
        """Return the rendered objects in their order, tests included.

        Raises:
            RenderError: If Helm refuses the values.
        """
        return read_all(self.template(release))

    def notes(self, release: Release) -> str:
        """Return the notes that are shown after an installation."""
        said = self._helm(
            "install", release.name, str(self.chart), "--dry-run=client", *_options(release)
        )
        return said.partition("\nNOTES:\n")[2]

    def upgraded(self, words: Sequence[str], cluster: Path) -> list[Object]:
        """Return what an upgrade over the last release would leave, without tests.

        Args:
            words: What stands behind `helm upgrade`, with `charts/weir` for the chart; where
                the output goes is passed over.
            cluster: Settings of a client of the cluster that has the last release.

        Raises:
            RenderError: If Helm refuses the upgrade.
        """
        told = [str(self.chart) if one == "charts/weir" else one for one in words if one[0] != ">"]
        server = ("--dry-run=server", "--kubeconfig", str(cluster), "--disable-openapi-validation")
        said = self._helm("upgrade", *told, *server, "--output", "json")
        return read_all(json.loads(said)["manifest"])

    def _helm(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603  our own Helm
            [tools.helm(), *words], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RenderError(done.stdout + done.stderr)
        return done.stdout


def _cluster() -> tuple[str, ...]:
    return ("--kube-version", KUBERNETES)


def _options(release: Release) -> list[str]:
    options = ["--namespace", NAMESPACE]
    if release.cluster is not None:
        options += ["--dry-run=server", "--kubeconfig", str(release.cluster)]
        options += ["--disable-openapi-validation"]
    for path in release.values:
        options += ["--values", str(path)]
    for one in release.sets:
        options += ["--set", one]
    return options


def read_all(text: str) -> list[Object]:
    """Return the objects of a text of YAML documents, without the empty ones.

    Raises:
        RenderError: If it is no YAML, or has a key twice, of which others would take one.
    """
    try:
        return [one for one in YAML(typ="safe").load_all(text) if one]
    except YAMLError as error:
        msg = f"manifests must be YAML without a key twice, got {error}"
        raise RenderError(msg) from error
