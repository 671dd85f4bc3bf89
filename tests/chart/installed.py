"""What a cluster answers to Helm: which kinds it knows, the Secrets, and the release that is there.

Helm asks while it renders with `--dry-run=server`: discovery, GET of Secrets, and its own record
of the last release, a Secret. Everything else is not there.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chart.manifests import of_kind
from weir_chart.render import NAMESPACE, Object

SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
MISSING = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "NotFound",
    "code": 404,
}


def discovery(objects: list[Object]) -> dict[str, Any]:
    """Return what a cluster that knows the kinds of these objects says of itself, by path."""
    kinds = {(one["apiVersion"], one["kind"]) for one in objects}
    versions = sorted({version for version, _ in kinds if "/" in version})
    groups = []
    for version in versions:
        told = {"groupVersion": version, "version": version.partition("/")[2]}
        name = version.partition("/")[0]
        groups.append({"name": name, "versions": [told], "preferredVersion": told})
    answers: dict[str, Any] = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
    }
    for version in ("v1", *versions):
        resources = [_resource(kind) for of, kind in sorted(kinds) if of == version]
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        told = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        answers[path] = told
    return answers


def _resource(kind: str) -> Object:
    name = kind.lower()
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    verbs = ["get", "list", "create", "update", "delete"]
    return {"name": plural, "singularName": name, "namespaced": True, "kind": kind, "verbs": verbs}


def _installed(found: Object) -> Object:
    """Return an object as Helm leaves it: marked as its own, so that it takes it up again."""
    shown = copy.deepcopy(found)
    shown["metadata"].setdefault("annotations", {}).update(
        {"meta.helm.sh/release-name": "weir", "meta.helm.sh/release-namespace": "weir"}
    )
    return shown


@dataclass(frozen=True)
class Last:
    """The last release.

    Attributes:
        chart: Its `Chart.yaml`.
        defaults: Its chart's `values.yaml`.
        told: What its user set.
    """

    chart: Object
    defaults: Object
    told: Object

    def record(self) -> Object:
        """Return the Secret in which Helm keeps it."""
        at = "2026-01-01T00:00:00Z"
        release = {
            "name": "weir",
            "namespace": NAMESPACE,
            "version": 1,
            "info": {"status": "deployed", "first_deployed": at, "last_deployed": at},
            "chart": {"metadata": self.chart, "values": self.defaults, "templates": []},
            "config": self.told,
            "manifest": "",
        }
        packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
        labels = {"owner": "helm", "name": "weir", "status": "deployed", "version": "1"}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "helm.sh/release.v1",
            "metadata": {"name": "sh.helm.release.v1.weir.v1", "labels": labels},
            "data": {"release": base64.b64encode(packed).decode()},
        }


@contextmanager
def cluster(
    objects: list[Object], folder: Path, lost: str = "", last: Last | None = None
) -> Iterator[Path]:
    """Yield the settings of a client of a cluster that holds all Secrets but the lost one.

    Args:
        objects: Of which the cluster knows all kinds, and has the Secrets.
        folder: Where the settings go.
        lost: Which of the chart's Secrets is not there.
        last: The release that Helm finds; None: nothing was installed by it.
    """
    answers = discovery(objects)
    for one in of_kind(objects, "Secret"):
        if one["metadata"]["name"] != f"weir-{lost}":
            answers[f"{SECRETS}/{one['metadata']['name']}"] = _installed(one)
    if last is not None:
        listed = {"kind": "SecretList", "apiVersion": "v1", "items": [last.record()]}
        answers[SECRETS] = listed | {"metadata": {}}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            body = json.dumps(found or MISSING).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield _client_settings(folder, server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def _client_settings(folder: Path, port: int) -> Path:
    named = {"name": "here"}
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{**named, "user": {}}],
        "contexts": [{**named, "context": {"cluster": "here", "user": "here"}}],
        "current-context": "here",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(settings))
    return path
