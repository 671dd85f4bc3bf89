"""The cluster's API as the driver's client finds it, and a kubelet that runs what is asked for.

Pods are the only objects. What is asked is answered as the API documents it: get, list by
labels and fields, watch, create, delete of one and of many. Patch and update are noted and refused;
who does not come with the driver's token is refused, too. A pod that is created is run as `host.py`
runs those of the chart, on an address of its own; its phase is that of its process.
"""

from __future__ import annotations

import copy
import json
import re
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from weir_chart.render import NAMESPACE, Object

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVERY_S = 0.1


@dataclass(frozen=True)
class Asked:
    """One request, as rules of access have it."""

    verb: str
    resource: str
    namespace: str


@dataclass
class Pods:
    """The pods that there are, and what has happened to them.

    Attributes:
        found: By name.
        events: All changes, in order: kind and pod.
    """

    found: dict[str, Object] = field(default_factory=dict)
    events: list[tuple[str, Object]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, kind: str, pod: Object) -> Object:
        """Store a pod, or drop it, and tell those who watch."""
        with self.changed:
            kept = copy.deepcopy(pod)
            kept["metadata"]["resourceVersion"] = str(len(self.events) + 1)
            if kind == "DELETED":
                self.found.pop(kept["metadata"]["name"], None)
            else:
                self.found[kept["metadata"]["name"]] = kept
            self.events.append((kind, kept))
            self.changed.notify_all()
            return kept

    def after(self, version: int) -> list[tuple[str, Object]]:
        """Return what has changed since a version; wait a while if nothing has."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) > version, timeout=1)
            return self.events[version:]

    def picked(self, query: dict[str, str]) -> list[Object]:
        """Return the pods that a query's selectors pick."""
        with self.changed:
            return [pod for pod in self.found.values() if picks(query, pod)]


def picks(query: dict[str, str], pod: Object) -> bool:
    """Return whether the selectors of a query pick a pod."""
    labels = pod["metadata"].get("labels", {})
    fields = {
        "metadata.name": pod["metadata"]["name"],
        "status.phase": pod.get("status", {}).get("phase"),
    }
    terms = [(labels, term) for term in _terms(query.get("labelSelector", ""))]
    terms += [(fields, term) for term in _terms(query.get("fieldSelector", ""))]
    return all(_holds(has, term) for has, term in terms)


def _terms(selector: str) -> list[str]:
    return [term for term in re.split(r",(?![^(]*\))", selector) if term]


def _holds(has: dict[str, Any], term: str) -> bool:
    found = re.fullmatch(r"([^ ]+) (not)?in \((.*)\)", term)
    if found:
        return (has.get(found[1]) in found[3].split(",")) is not bool(found[2])
    found = re.fullmatch(r"([^ =!]+)(!?)==?([^ =]*)", term)
    assert found, f"a selector of this form is not known here: {term}"
    return (has.get(found[1]) == found[3]) is not bool(found[2])


@dataclass
class Api:
    """The API's server, on a port of its own.

    Attributes:
        token: Whoever does not show it is refused.
        run: Starts a pod's process, and returns what says how it goes: None while it runs, then
            its exit status.
        asked: Every request.
        created: Every pod as it was asked for.
    """

    address: str
    token: str
    run: Callable[[Object], Callable[[], int | None]]
    pods: Pods = field(default_factory=Pods)
    asked: set[Asked] = field(default_factory=set)
    created: list[Object] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Listen; answer nothing yet."""
        self.server = ThreadingHTTPServer((self.address, 0), handler_of(self))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(EVERY_S,))

    @property
    def url(self) -> str:
        """Return where it is."""
        return f"http://{self.address}:{self.server.server_address[1]}"

    def __enter__(self) -> Api:
        """Answer."""
        self.thread.start()
        return self

    def __exit__(self, *_told: object) -> None:
        """Answer nothing more."""
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def create(self, pod: Object) -> Object:
        """Store a pod and run it."""
        self.created.append(copy.deepcopy(pod))
        pod["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": NAMESPACE}
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        pod["status"] = {"phase": "Pending"}
        kept = self.pods.put("ADDED", pod)
        threading.Thread(target=self._follow, args=(kept,), daemon=True).start()
        return kept

    def _follow(self, pod: Object) -> None:
        ended = self.run(pod)
        self._tell(pod, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        while (status := ended()) is None and not self.closing.wait(EVERY_S):
            pass
        if status is not None:
            phase = "Failed" if status else "Succeeded"
            self._tell(pod, phase, {"terminated": {"exitCode": status, "reason": "Ended"}})

    def _tell(self, pod: Object, phase: str, state: Object) -> None:
        (container,) = pod["spec"]["containers"]
        running = phase == "Running"
        told = {"name": container["name"], "ready": running, "started": running, "state": state}
        # One that was deleted meanwhile is gone for good, also amid this.
        with self.pods.changed:
            if pod["metadata"]["name"] in self.pods.found:
                self.pods.put(
                    "MODIFIED", pod | {"status": {"phase": phase, "containerStatuses": [told]}}
                )


def handler_of(api: Api) -> type[BaseHTTPRequestHandler]:
    """Return what answers the requests of an API."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name, query = self._read("get")
            if name:
                self._answer(api.pods.found.get(name))
            elif query.get("watch") == "true":
                self._watch(query)
            else:
                version = str(len(api.pods.events))
                items = api.pods.picked(query)
                listed = {"kind": "PodList", "apiVersion": "v1", "items": items}
                self._answer(listed | {"metadata": {"resourceVersion": version}})

        def do_POST(self) -> None:
            self._read("create")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(api.create(json.loads(body)), 201)

        def do_PATCH(self) -> None:
            self._refuse("patch")

        def do_PUT(self) -> None:
            self._refuse("update")

        def do_DELETE(self) -> None:
            name, query = self._read("delete")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            picked = api.pods.picked(
                query | ({"fieldSelector": f"metadata.name={name}"} if name else {})
            )
            for pod in picked:
                api.pods.put("DELETED", pod)
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

        def _refuse(self, verb: str) -> None:
            """Note what is asked, and do none of it: the driver is given no right to it."""
            self._read(verb)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Failure"}, 403)

        def _read(self, verb: str) -> tuple[str, dict[str, str]]:
            """Note what is asked; return the name of a pod, if one is meant, and the query."""
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            found = re.fullmatch(r"/api/v1/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?", parts.path)
            namespace, resource, name = found.groups() if found else ("", parts.path, "")
            if not name and verb in ("get", "delete"):
                many = "watch" if query.get("watch") == "true" else "list"
                verb = "deletecollection" if verb == "delete" else many
            api.asked.add(Asked(verb, resource, namespace))
            return name or "", query

        def _answer(self, body: Object | None, status: int = 200) -> None:
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
            text = json.dumps(body or missing).encode()
            self.send_response(status if body else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _watch(self, query: dict[str, str]) -> None:
            """Tell all changes from a version on, as they come; a web socket is not spoken."""
            if self.headers.get("Upgrade"):
                self._answer({"kind": "Status", "apiVersion": "v1", "status": "Failure"}, 503)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            at = int(query.get("resourceVersion") or len(api.pods.events))
            with suppress(OSError):
                while not api.closing.is_set():
                    for kind, pod in api.pods.after(at):
                        at += 1
                        if picks(query, pod):
                            event = json.dumps({"type": kind, "object": pod})
                            self.wfile.write(f"{event}\n".encode())
                    self.wfile.flush()

        def parse_request(self) -> bool:
            """Refuse who does not show the token."""
            if not super().parse_request():
                return False
            if self.headers.get("Authorization") == f"Bearer {api.token}":
                return True
            self.send_error(401)
            return False

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    return Handler
