"""What real clients sent, recorded from them, and what becomes of it: events and answers, whole.

`captures/` has the recordings: request line, header fields and body, one request a line.
`golden/` has what they become; a change of it is a change for those who use these clients, and is
looked at. Run with the environment variable `WEIR_WRITE_GOLDEN`, the test writes it anew.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from weir.clock import ManualClock

from .in_process import KEY, Asked, Request, ask

CAPTURES = Path(__file__).parent / "captures"
GOLDEN = Path(__file__).parent / "golden"
WRITE = "WEIR_WRITE_GOLDEN"
# The keys that the recorded clients were given.
_THEIRS = ("wk_demo", "phc_demo", "wk")
# What differs each time.
_REQUEST_ID = re.compile(r'"requestid": ?"[0-9a-f-]{36}"')


def requests(name: str) -> list[tuple[Request, int]]:
    """Return the requests of a recording, with this test's key, and when each came."""
    lines = (CAPTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(_request(json.loads(line)), round(json.loads(line)["t"] * 1_000)) for line in lines]


def _request(said: dict[str, Any]) -> Request:
    method, target, _ = said["line"].split(" ")
    headers = {name: text for name, text in said["headers"] if name.lower() != "content-length"}
    for name, text in list(headers.items()):
        if name.lower() == "authorization":
            headers[name] = _ours(text)
    if "body_hex" in said:
        body = bytes.fromhex(said["body_hex"])
    else:
        body = re.sub(rf'"({"|".join(_THEIRS)})"', f'"{KEY}"', said["body"]).encode()
    # Clients whose protocol has no credentials are configured with a header field.
    if "Authorization" not in headers and KEY.encode() not in body:
        headers["Authorization"] = f"Bearer {KEY}"
    if said["gz"]:
        body = gzip.compress(body, mtime=0)
    target = re.sub(r"/projects/\w+/", f"/projects/{KEY}/", target)
    return Request(target, body, method, headers)


def _ours(authorization: str) -> str:
    scheme, _, _word = authorization.partition(" ")
    if scheme == "Basic":
        return f"Basic {base64.b64encode(f'{KEY}:'.encode()).decode()}"
    return f"{scheme} {KEY}"


def told(asked: Asked) -> dict[str, Any]:
    """Return what became of a request as it stands in `golden/`."""
    stored = [_REQUEST_ID.sub('"requestid": ""', json.dumps(one)) for one in asked.events]
    return {
        "status": asked.status,
        "type": asked.headers.get("content-type", ""),
        "body": asked.body.decode("latin-1").replace(KEY, "<key>"),
        "keys": [record.key.decode("latin-1") for record in asked.records],
        "events": [json.loads(one) for one in stored],
        "refused": [[reason, text.decode("latin-1")] for reason, text in asked.refused],
    }


def outcome(name: str) -> list[dict[str, Any]]:
    """Return what becomes of each request of a recording."""
    return [told(ask(request, clock=ManualClock(at_ms))) for request, at_ms in requests(name)]


NAMES = sorted(path.stem for path in CAPTURES.glob("*.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_clients(name: str) -> None:
    """Each request of a client's becomes the events, and gets the answer, that it did before."""
    found, path = outcome(name), GOLDEN / f"{name}.json"
    if WRITE in os.environ:
        path.write_text(f"{json.dumps(found, indent=2, ensure_ascii=False)}\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_no_key_is_stored(name: str) -> None:
    """The key is in no record, wherever the client put it."""
    for request, _at_ms in requests(name):
        asked = ask(request)

        assert not any(KEY.encode() in one.value + one.key for one in asked.records)
