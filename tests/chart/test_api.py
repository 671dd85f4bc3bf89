"""The server that stands in for the cluster's API notes all that a driver may ask of one."""

from __future__ import annotations

import http.client
import json

import pytest
from chart.api import PODS, Api, Asked
from weir_chart.render import NAMESPACE

TOKEN = "of-the-driver"  # noqa: S105  of no one


def ask(api: Api, method: str, path: str) -> int:
    """Return the status of an answer."""
    host, port = api.server.server_address[:2]
    connection = http.client.HTTPConnection(str(host), port, timeout=10)
    body = json.dumps({"metadata": {"name": "one", "labels": {}}, "spec": {"containers": [{}]}})
    connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


@pytest.mark.parametrize(
    ("method", "path", "verb", "status"),
    [
        ("GET", PODS, "list", 200),
        ("GET", f"{PODS}/one", "get", 404),
        ("DELETE", PODS, "deletecollection", 200),
        ("DELETE", f"{PODS}/one", "delete", 200),
        ("PATCH", f"{PODS}/one", "patch", 403),
        ("PUT", f"{PODS}/one", "update", 403),
    ],
)
def test_every_verb_is_noted(method: str, path: str, verb: str, status: int) -> None:
    """What a Role does not allow is seen as well: it is noted before it is refused."""
    with Api("127.0.0.1", TOKEN, lambda _pod: lambda: 0) as api:
        assert ask(api, method, path) == status
        assert api.asked == {Asked(verb, "pods", NAMESPACE)}
