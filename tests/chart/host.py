"""Rendered pods as processes of this machine: what a kubelet would do, without containers.

Command, arguments, variables, mounted files, ports and probes are those of the manifests. Two
things stand in for a container: a folder is put before each mountPath, and each pod has a
loopback address of its own, which takes the place of 0.0.0.0 and of the names of Services.
What the image brings (programs, and the variables of `IMAGE`) is this checkout's.

Each mount, probe and container is ticked off when it is used; `unused` names the rest.
"""

from __future__ import annotations

import base64
import http.client
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from chart.manifests import Workload, named, of_kind, selects, workloads
from weir_chart import tools
from weir_chart.render import NAMESPACE, Object
from weir_local.process import Part
from weir_local.repository import SPARK_JARS, WEB_BUILD
from weir_local.waiting import wait_until

PROGRAMS = {
    "python": sys.executable,
    "executor": str(Path(sys.executable).parent / "executor"),
    "redis-server": str(tools.redis_server()),
    "redis-cli": str(tools.redis_client()),
}
IMAGE = {
    "WEIR_ANALYTICS_JARS_DIR": str(SPARK_JARS),
    "WEIR_DASHBOARD_WEB_DIR": str(WEB_BUILD),
    **{name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ},
}
TMP = "/tmp"  # noqa: S108  a path in the container
# Where a kubelet puts the token of a pod's account, and the variable by which the cluster's
# client is told of another place.
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105  a path in the container
TOKEN_TOLD = "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"  # noqa: S105  a variable


@dataclass
class HostPod:
    """One pod.

    Attributes:
        workload: What makes it.
        folder: What is put before each of its paths.
        address: Its own, of the loopback network.
        names: Host and port of what it calls -> where that is here.
        used: Mounts and probes that have been of use.
    """

    workload: Workload
    folder: Path
    address: str
    names: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def container(self) -> Object:
        """Return its only container."""
        (container,) = self.workload.containers()
        return container

    @property
    def part(self) -> Part:
        """Return its process."""
        return self._part

    def prepare(self, objects: list[Object]) -> None:
        """Make its volumes, filled as the manifests say, and its process; start nothing."""
        volumes = {one["name"]: one for one in self.workload.spec["volumes"]}
        if self.has_token:
            self.place(TOKEN).parent.mkdir(parents=True, exist_ok=True)
            self.place(TOKEN).write_text(self.token)
        mounts = sorted(self.container["volumeMounts"], key=lambda mount: mount["mountPath"])
        for mount in mounts:
            place = self.place(mount["mountPath"])
            place.mkdir(parents=True, exist_ok=True)
            # A claim of a StatefulSet has no volume in the template: it begins empty, too.
            for name, content in _files(volumes.get(mount["name"], {}), objects).items():
                (place / name).write_bytes(content)
                (place / name).chmod(0o440)
        variables = [f"{name}={value}" for name, value in self._environment().items()]
        self._part = Part(
            self.workload.component, ["env", "-i", *variables, *self._command()], self.folder
        )

    @property
    def name(self) -> str:
        """Return the name of the pod itself."""
        name: str = self.workload.owner["metadata"]["name"]
        return name if self.workload.owner["kind"] == "Pod" else f"{name}-0"

    @property
    def has_token(self) -> bool:
        """Return whether it is given the token of its account."""
        return self.workload.spec["automountServiceAccountToken"] is True

    @property
    def token(self) -> str:
        """Return the token of its account."""
        return f"token-of-{self.workload.spec['serviceAccountName']}"

    def place(self, path: str) -> Path:
        """Return where a path of the container is here."""
        return self.folder / path.lstrip("/")

    def _environment(self) -> dict[str, str]:
        self.used.add(TMP)
        read = {"metadata.name": self.name, "status.podIP": self.address}
        told = {
            one["name"]: read[one["valueFrom"]["fieldRef"]["fieldPath"]]
            if "valueFrom" in one
            else self._here(str(one["value"]))
            for one in self.container.get("env", [])
        }
        here = {"HOME": str(self.place(TMP)), "TMPDIR": str(self.place(TMP))}
        token = {TOKEN_TOLD: str(self.place(TOKEN))} if self.has_token else {}
        return {**IMAGE, **here, **token, **told}

    def _command(self) -> list[str]:
        told = [*self.container.get("command", []), *self.container.get("args", [])]
        command = [PROGRAMS[told[0]], *map(self._here, told[1:])]
        # Redis is told by a file to listen everywhere; everywhere is this pod's address.
        return [*command, "--bind", self.address] if told[0] == "redis-server" else command

    def _here(self, text: str) -> str:
        """Return a text of the manifest with its path, address or name as it is here."""
        if text == "0.0.0.0":  # noqa: S104  what is replaced
            return self.address
        for mount in self.container["volumeMounts"]:
            path = mount["mountPath"]
            found = re.sub(rf"(?<![\w./-]){re.escape(path)}(?=/|$)", f"{self.folder}{path}", text)
            if found != text:
                self.used.add(path)
                return found
        for name, place in self.names.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?!\d)", place, text)
        return text

    def probe(self, name: str) -> bool:
        """Return whether one of its probes passes now."""
        self.used.add(name)
        probe = self.container[name]
        if "exec" in probe:
            return self._runs(probe["exec"]["command"])
        action = probe.get("httpGet") or probe["tcpSocket"]
        port = next(
            one["containerPort"] for one in self.container["ports"] if one["name"] == action["port"]
        )
        if "tcpSocket" in probe:
            return _accepts(self.address, port)
        return _answers(self.address, port, action["path"], probe["timeoutSeconds"])

    def _runs(self, command: list[str]) -> bool:
        client = f"{PROGRAMS['redis-cli']} -h {self.address}"
        words = [word.replace("redis-cli", client) for word in command]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0  # noqa: S603

    def await_probe(self, name: str) -> None:
        """Return when a probe has passed; a process that has ended is started again.

        Raises:
            TimeoutError: If it fails as often as it may, or for two minutes where that is told
                of a single failure only.
        """
        probe = self.container[name]
        allowed_s = probe["periodSeconds"] * probe["failureThreshold"]
        allowed_s = allowed_s if name == "startupProbe" else max(allowed_s, 120)
        wait_until(
            lambda: self.runs() and self.probe(name),
            timeout_s=allowed_s,
            what=f"{name} of {self.workload.name}; its log ends: {self.part.written(5)}",
            every_s=0.5,
        )

    def runs(self) -> bool:
        """Return whether its process lives; starts it again if it does not."""
        if self.part.pid() is not None:
            return True
        self.part.start()
        return False

    def finish(self) -> int:
        """Run it to its end, as the pod of a Job or a test, and return its exit code."""
        done = subprocess.run(  # noqa: S603  the manifest's command
            self.part.argv, capture_output=True, text=True, check=False, timeout=300
        )
        self.part.log_path.write_text(done.stdout + done.stderr)
        return done.returncode

    def end(self) -> str:
        """End it as the kubelet does, and return how it ended."""
        grace_s = self.workload.spec["terminationGracePeriodSeconds"]
        hook = self.container.get("lifecycle", {}).get("preStop", {})
        pause_s = hook.get("sleep", {}).get("seconds", 0)
        time.sleep(pause_s)
        pid = self.part.pid()
        assert pid is not None, self.part.ending()
        os.kill(pid, signal.SIGTERM)
        return wait_until(
            self._how_it_ended,
            timeout_s=grace_s - pause_s,
            what=f"the end of {self.workload.name} within its grace",
        )

    def _how_it_ended(self) -> str | None:
        # While threads of a process go on, its first one may be over: no exit status yet.
        said = self.part.ending() if self.part.pid() is None else ""
        return said if said.rpartition(" ended ")[2] != said else None

    def unused(self) -> set[str]:
        """Return its mounts and probes that have been of no use."""
        mounts = {mount["mountPath"] for mount in self.container["volumeMounts"]}
        # A folder below another one that was named: of use if something was written to it.
        filled = {path for path in mounts if any(self.place(path).iterdir())}
        below = {path for path in filled if any(path.startswith(f"{one}/") for one in self.used)}
        probes = {name for name in self.container if name.endswith("Probe")}
        return (mounts | probes) - self.used - below


def _files(volume: Object, objects: list[Object]) -> dict[str, bytes]:
    """Return the files of a volume; a scratch volume has none."""
    if "configMap" in volume:
        data = named(objects, "ConfigMap", volume["configMap"]["name"])["data"]
        return {name: text.encode() for name, text in data.items()}
    if "secret" in volume:
        told = volume["secret"]
        return _secret_files({"name": told["secretName"], **told}, objects)
    found: dict[str, bytes] = {}
    for source in volume.get("projected", {}).get("sources", []):
        found |= _secret_files(source["secret"], objects)
    return found


def _secret_files(told: Object, objects: list[Object]) -> dict[str, bytes]:
    data = named(objects, "Secret", told["name"])["data"]
    wanted = told.get("items", [{"key": name, "path": name} for name in data])
    return {one["path"]: base64.b64decode(data[one["key"]]) for one in wanted}


def _accepts(address: str, port: int) -> bool:
    connection = http.client.HTTPConnection(address, port, timeout=1)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def _answers(address: str, port: int, path: str, timeout_s: float) -> bool:
    connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        # As the kubelet does: from 200 to 399.
        return http.client.OK <= connection.getresponse().status < http.client.BAD_REQUEST
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class HostCluster:
    """All pods of an installation, on this machine."""

    def __init__(self, objects: list[Object], folder: Path, elsewhere: dict[str, str]) -> None:
        """Make every pod's volumes; start nothing.

        Args:
            objects: The rendered manifests.
            folder: Where everything goes.
            elsewhere: Where what is not of the chart is, such as the bundled Kafka -> where
                it is here.
        """
        self.network = f"127.{random.randint(2, 250)}.{random.randint(1, 250)}"  # noqa: S311  no secret
        self.pods = [
            HostPod(one, folder / one.component, f"{self.network}.{number}")
            for number, one in enumerate(workloads(objects), start=2)
        ]
        self.names = elsewhere | self._services(objects)
        for pod in self.pods:
            pod.names = self.names
            pod.prepare(objects)

    def _services(self, objects: list[Object]) -> dict[str, str]:
        """Return where each Service's ports are here."""
        found = {}
        for service in of_kind(objects, "Service"):
            spec = service["spec"]
            for pod in self.pods:
                if not selects(spec["selector"], pod.workload.metadata["labels"]):
                    continue
                if spec.get("clusterIP") == "None":
                    found[f"{pod.name}.{service['metadata']['name']}.{NAMESPACE}.svc"] = pod.address
                for port in spec["ports"]:
                    target = next(
                        one["containerPort"]
                        for one in pod.container["ports"]
                        if one["name"] == port["targetPort"]
                    )
                    name = f"{service['metadata']['name']}:{port['port']}"
                    found[name] = f"{pod.address}:{target}"
        return found

    def pod(self, component: str) -> HostPod:
        """Return the pod of a component."""
        (found,) = (pod for pod in self.pods if pod.workload.component == component)
        return found

    @property
    def servers(self) -> list[HostPod]:
        """Return the pods that run until they are stopped."""
        return [pod for pod in self.pods if pod.workload.is_served]

    def start(self) -> None:
        """Start all at once, as a cluster does, and return when every one is ready."""
        for pod in self.servers:
            pod.part.start()
        topics = self.pod("topics")
        assert topics.finish() == 0, topics.part.log_path.read_text()
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            for pod in self.servers:
                pod.await_probe(name)

    def kill(self) -> None:
        """End what still runs."""
        for pod in self.servers:
            pod.part.kill()
