"""What tests of channels ask of the API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

    from .conftest import Running


def define_channel(running: Running, name: str, **members: Any) -> None:
    """Store a channel through the API."""
    with running.client() as client:
        text = {"kind": "channel", "name": name, **members}
        path = f"/definitions/channel/{name}"
        body = {"text": json.dumps(text)}
        answer = client.put(path, json=body, headers={"if-none-match": "*"})
    assert answer.status_code == 201, answer.text


def listed_channel(client: httpx.Client, name: str) -> dict[str, Any]:
    """Return a channel as the list says it."""
    items = client.get("/channels").json()["items"]
    return next(one for one in items if one["name"] == name)


def problem(response: httpx.Response) -> tuple[int, str]:
    """Return status and code of a refusal."""
    return response.status_code, response.json()["code"]
