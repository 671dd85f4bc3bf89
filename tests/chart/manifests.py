"""What stands in rendered manifests: pods, containers, and how objects refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weir_chart.render import Object, read_all

RUNS_ON = ("Deployment", "StatefulSet")
"""Kinds whose pods run until they are stopped."""


@dataclass(frozen=True)
class Workload:
    """An object that makes pods.

    Attributes:
        owner: The object; of a test, the pod itself.
        metadata: Of its pods.
        spec: Of its pods.
    """

    owner: Object
    metadata: Object
    spec: Object

    @property
    def name(self) -> str:
        """Return what it is called in a message."""
        return f"{self.owner['kind']}/{self.owner['metadata']['name']}"

    @property
    def component(self) -> str:
        """Return which part of Weir it is."""
        component: str = self.metadata["labels"]["app.kubernetes.io/component"]
        return component

    @property
    def is_served(self) -> bool:
        """Return whether its pods run until they are stopped."""
        return self.owner["kind"] in RUNS_ON

    def containers(self) -> list[Object]:
        """Return all its containers, those that run first included."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]


def workloads(objects: list[Object]) -> Iterator[Workload]:
    """Yield everything that makes pods."""
    for one in objects:
        if one["kind"] == "Pod":
            yield Workload(one, one["metadata"], one["spec"])
        elif one["kind"] in (*RUNS_ON, "Job"):
            template = one["spec"]["template"]
            yield Workload(one, template["metadata"], template["spec"])


def executors(objects: list[Object]) -> list[Workload]:
    """Return the pods that the driver makes, as their template has them; none in mode local."""
    found = []
    for one in of_kind(objects, "ConfigMap"):
        if "pod.yaml" in one["data"]:
            (pod,) = read_all(one["data"]["pod.yaml"])
            found.append(
                Workload(pod | {"metadata": one["metadata"]}, pod["metadata"], pod["spec"])
            )
    return found


def pods(objects: list[Object]) -> list[Workload]:
    """Return everything that makes pods, the driver included; there is always something."""
    found = list(workloads(objects))
    assert found
    return found + executors(objects)


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Return the objects of a kind."""
    return [one for one in objects if one["kind"] == kind]


def named(objects: list[Object], kind: str, name: str) -> Object:
    """Return the one object of a kind and a name."""
    found = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    assert len(found) == 1, f"{kind}/{name}: {len(found)} of {[o['metadata'] for o in found]}"
    return found[0]


def selects(selector: Object, labels: Object) -> bool:
    """Return whether a selector of labels picks a pod with these; an empty one picks all."""
    return all(labels.get(name) == value for name, value in selector.items())


def environment(container: Object) -> dict[str, Any]:
    """Return a container's variables; None for those that are read from elsewhere."""
    return {one["name"]: one.get("value") for one in container.get("env", [])}


def secrets_of(spec: Object) -> set[str]:
    """Return the names of all Secrets that a pod mounts."""
    found = set()
    for volume in spec.get("volumes", []):
        if "secret" in volume:
            found.add(volume["secret"]["secretName"])
        for source in volume.get("projected", {}).get("sources", []):
            if "secret" in source:
                found.add(source["secret"]["name"])
    return found


MEMORY = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}


def mebibytes(text: str) -> float:
    """Return an amount of memory in MiB."""
    return float(text[:-2]) * MEMORY[text[-2:]]


def cores(amount: str | float) -> float:
    """Return an amount of CPU in cores."""
    text = str(amount)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
