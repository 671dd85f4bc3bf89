"""What an installation made is kept by the next one: passwords, the key of hashes, the first key.

Helm looks for Secrets in the cluster while it renders. There is no cluster here, so what one
answers to these questions (discovery, and GET of a Secret) is answered by a small server; the
Secrets are those of a render before.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from chart.manifests import of_kind
from weir_chart.render import Object, Release, Workbench

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


@contextmanager
def cluster(objects: list[Object], folder: Path, lost: str = "") -> Iterator[Path]:
    """Yield the settings of a client of a cluster that holds all Secrets but the lost one."""
    prefix = "/api/v1/namespaces/weir/secrets/"
    answers = discovery(objects)
    for one in of_kind(objects, "Secret"):
        if one["metadata"]["name"] != f"weir-{lost}":
            answers[f"{prefix}{one['metadata']['name']}"] = _installed(one)

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


def secrets(objects: list[Object]) -> dict[str, Object]:
    """Return the content of each Secret by its name."""
    return {one["metadata"]["name"]: one["data"] for one in of_kind(objects, "Secret")}


def test_the_next_installation_changes_no_secret(bench: Workbench, tmp_path: Path) -> None:
    """Helm takes the Secrets up that an uninstallation kept, and renders them as they are."""
    first = bench.objects(Release())

    with cluster(first, tmp_path) as client:
        second = bench.objects(Release(cluster=client))

    assert len(secrets(first)) == 6
    assert secrets(second) == secrets(first)


@pytest.mark.parametrize("lost", ["ingest", "dashboard", "bootstrap", "redis-acl", "alerts"])
def test_a_lost_secret_comes_back_from_the_others(
    bench: Workbench, tmp_path: Path, lost: str
) -> None:
    """What stands in two Secrets survives the loss of one; a password that is lost is new."""
    first = bench.objects(Release())

    with cluster(first, tmp_path, lost) as client:
        second = bench.objects(Release(cluster=client))

    before, after = secrets(first), secrets(second)
    for name in ("ingest", "dashboard"):
        assert after[f"weir-{name}"]["hash_key"] == before[f"weir-{name}"]["hash_key"]
    for name in ("dashboard", "bootstrap"):
        assert after[f"weir-{name}"]["bootstrap_key"] == before[f"weir-{name}"]["bootstrap_key"]
    changed = {name for name in before if before[name] != after[name]}
    had_password = lost in ("ingest", "dashboard", "alerts")
    assert changed == ({f"weir-{lost}", "weir-redis-acl"} if had_password else set())
