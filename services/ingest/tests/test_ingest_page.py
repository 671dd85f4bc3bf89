"""docs/ingest.md: what its examples become and are answered, without a broker."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from weir.admission import Admitted, Refused, admit
from weir.attributes import ENVELOPE
from weir.event_time import format_time
from weir_ingest import protocols
from weir_ingest.accept import terms_of
from weir_ingest.answers import Answer
from weir_ingest.cors import options_answer
from weir_ingest.head import Head
from weir_ingest.settings import Settings

from .in_process import ARRIVED_MS, CALLER, KEY, LIMITS, Request, ask

PAGE = (Path(__file__).parents[3] / "docs" / "ingest.md").read_text(encoding="utf-8")
# Where a credential is looked for that is not looked for everywhere.
PATHS = {
    "writeKey": "/v1/track",
    "api_key": "/capture",
    "?access_token=": "/v1/events",
    "?token=": "/v0/events?name=a",
}
BEARER = {"authorization": f"Bearer {KEY}"}


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose head begins with some cells."""
    lines = PAGE.splitlines()
    (start,) = [at for at, line in enumerate(lines) if line.startswith(heading)]
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def code(cell: str) -> str:
    """Return what stands first between backticks."""
    return cell.split("`")[1]


# An app id is no key; a source opens its door (test_snowplow_senders.py).
CREDENTIALS = [row for row in table("| credential | who sends it |") if "`aid`" not in row[0]]


def presenting(how: str, key: str) -> Request:
    """Return a request that presents a key as a row of the page says."""
    what = code(how)
    if how.startswith("in the body"):
        said = {what: key, "userId": "u", "event": "e", "distinct_id": "u"}
        return Request(PATHS[what], json.dumps(said).encode())
    if how.startswith("query"):
        name = what.partition("<")[0]
        path = PATHS[name]
        return Request(f"{path}{'&' if '?' in path else '?'}{name[1:]}{key}", b"{}")
    scheme, _, word = what.removeprefix("Authorization: ").partition(" ")
    secret = re.sub("<key>|<token>", key, word)
    if scheme == "Basic":
        secret = b64encode(secret.encode()).decode()
    return Request("/v1/events", b"{}", headers={"authorization": f"{scheme} {secret}"})


def scope(query: str = "", **headers: str) -> dict[str, Any]:
    """Return a request as ASGI has it; header names are written with underscores."""
    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return {"headers": named, "query_string": query.lstrip("?").encode()}


def become(item: str, query: str = "") -> dict[str, Any] | Refused:
    """Return the event that an object is, posted as JSON, or why it is none."""
    head = Head(scope(query, content_type="application/json"), ARRIVED_MS)
    batch = protocols.read(head, item.encode(), LIMITS)
    (text,) = batch.items
    found = admit(text, 0, terms_of(head, CALLER, batch))
    return json.loads(found.value) if isinstance(found, Admitted) else found


def post(body: bytes, query: str = "", **headers: str) -> tuple[int, Any, list[dict[str, Any]]]:
    """Return status and body of the answer to events, and those that it stored."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    asked = ask(Request(f"/v1/events?{query.lstrip('?')}", body, headers=named))
    return asked.status, asked.json, asked.events


def requests() -> list[tuple[dict[str, str], bytes, Any]]:
    """Return headers and body of each request on the page, and the answer that follows, if any."""
    blocks = re.findall(r"```http\n(.*?)\n\n(.*?)\n```\n(?:\n```json\n(.*?)```)?", PAGE, re.S)
    found = []
    for head, body, answer in blocks:
        first, *lines = head.splitlines()
        assert first == "POST /v1/events HTTP/1.1"
        headers = dict(line.lower().split(": ", 1) for line in lines if not line.startswith("ce-"))
        headers |= dict(line.split(": ", 1) for line in lines if line.startswith("ce-"))
        found.append((headers, body.encode(), json.loads(answer) if answer else None))
    return found


class TestItems:
    @pytest.mark.parametrize(
        "row", table("| posted | `type` of the event | its `data` |"), ids=itemgetter(0)
    )
    def test_envelope_or_data(self, row: list[str]) -> None:
        """An object becomes the event, with the type and data, that the page gives for it."""
        item, event_type, data, _ = row
        found = become(code(item))
        if isinstance(found, Refused):
            assert event_type == f"quarantined, `{found.reason}`"
            return
        assert f"`{found['type']}`" == event_type
        expected = None if data == "none" else json.loads(code(data))
        assert found.get("data") == expected

    @pytest.mark.parametrize("row", table("| posted | `time` of the event |"), ids=itemgetter(0))
    def test_time(self, row: list[str]) -> None:
        """The time is taken from where the page says, else it is the arrival."""
        item, time = row
        found = become(code(item))
        if isinstance(found, Refused):
            assert time == f"quarantined, `{found.reason}`"
        elif time.startswith("its arrival"):
            assert (found["time"], found["timesrc"]) == (format_time(ARRIVED_MS), "arrived")
        else:
            assert (f"`{found['time']}`", found["timesrc"]) == (time, "client")

    @pytest.mark.parametrize("row", table("| parameter | gives |"), ids=itemgetter(0))
    def test_query(self, row: list[str]) -> None:
        """A parameter gives what the item does not say, and changes nothing that it says."""
        parameter, _, bare, named = row
        heads = re.findall(r"`type` of `(\{.*?\})` \|", PAGE)
        assert len(heads) == 2
        query = code(parameter) if parameter.startswith("`") else ""
        for item, expected in zip(heads, (bare, named), strict=True):
            found = become(item, query)
            assert isinstance(found, dict)
            assert f"`{found['type']}`" == expected
            assert found.get("subject") == ("u42" if "subject" in query else None)

    def test_members_of_an_envelope(self) -> None:
        """The page lists the members that an event without `specversion` may have."""
        (listed,) = re.findall(r"than those of an envelope: (.*)\.$", PAGE, re.M)
        assert set(re.findall("`(.*?)`", listed)) == ENVELOPE

    @pytest.mark.parametrize(
        ("kind", "body", "others"),
        [
            ("NDJSON", b"1\n{}", b'{"a":1}\n1'),
            ("JSON text sequence", b"\x1e1\x1e{}", None),
            ("JSON array", None, b"[1, {}]"),
        ],
    )
    def test_content_types(self, kind: str, body: bytes | None, others: bytes | None) -> None:
        """A body is cut in two by its content type, or under any other by how it begins."""
        rows = table("| body | taken as such by its `Content-Type` |")
        ((types, name),) = [(types, name) for what, types, name in rows if what.startswith(kind)]
        listed = re.findall("`(application/.*?)`", types)
        assert bool(listed) == (body is not None)
        assert ("any other type" in types) == (others is not None)
        for content_type, text in [*((one, body) for one in listed), ("text/plain", others)]:
            if text is not None:
                head = Head(scope(content_type=content_type), ARRIVED_MS)
                batch = protocols.read(head, text, LIMITS)
                assert (batch.protocol, len(batch.items)) == (code(name), 2), content_type


class TestAnswers:
    def test_requests_are_found(self) -> None:
        """Two CloudEvents, lines of which one is bad, and a body that is no JSON."""
        assert [answer is not None for _, _, answer in requests()] == [False, False, True, True]

    @pytest.mark.parametrize(("headers", "body", "answer"), requests())
    def test_requests(self, headers: dict[str, str], body: bytes, answer: Any) -> None:
        """Each request on the page is answered as the page says, else with 200 and no word more."""
        status, told, events = post(body, **BEARER, **headers)
        plain = {"accepted": 1, "quarantined": 0, "position": "0:4711,3:4698", "retry_safe": True}
        assert told == (answer or plain)
        assert status == told.get("status", 200)
        assert len(events) == told.get("accepted", 0)

    def test_the_example_of_curl(self) -> None:
        """The first lines that a newcomer types store two events of the type in the query."""
        command = re.findall(r"```sh\n(curl.*?)```", PAGE, re.S)
        (query, body), *others = re.findall(r"(\?\S+)\".* -d '(.*?)'", command[0], re.S)
        status, told, events = post(body.encode(), query, content_type="application/json", **BEARER)
        assert others == []
        assert (status, told["accepted"], told["retry_safe"]) == (200, 2, False)
        assert {event["type"] for event in events} == {"shop.order"}

    @pytest.mark.parametrize("row", CREDENTIALS, ids=itemgetter(0))
    def test_credentials(self, row: list[str]) -> None:
        """Each credential opens the door where the page says so, and another key does not."""
        how, _ = row
        for key, statuses in ((KEY, {200, 202}), (KEY[:-1], {401, 403})):
            assert ask(presenting(how, key)).status in statuses

    @pytest.mark.parametrize("row", table("| coding | sent by |"), ids=itemgetter(0))
    def test_codings(self, row: list[str]) -> None:
        """A coding on the page is known, where it is spoken; another is refused with 415."""
        names, who, _ = row
        for coding in re.findall("`(.*?)`", names):
            headers = {**BEARER, "content-encoding": coding}
            headers["content-type"] = "application/x-protobuf" if "Prometheus" in who else ""
            path = "/api/v1/write" if "Prometheus" in who else "/v1/events"
            assert ask(Request(path, b"{}", headers=headers)).status != 415, coding
        assert post(b"{}", **BEARER, content_encoding="br")[0] == 415

    def test_idempotency_keys(self) -> None:
        """An empty one is none, and two long ones that begin alike are two."""

        def ids(key: str) -> str:
            _, told, (event,) = post(b'{"n":1}', **BEARER, idempotency_key=key)
            return f"{told['retry_safe']} {event['id']}"

        assert ids('"8e03"') == ids("8e03")
        assert ids("x" * 600) == ids("x" * 600) != ids("x" * 599 + "y")
        assert ids('""').startswith("False ")
        assert ids('""') != ids('""')

    def test_limits(self) -> None:
        """A limit with a setting is that setting's default."""
        rows = table("| what | most | setting |")
        fields = {f"WEIR_INGEST_{name}".upper(): f for name, f in Settings.model_fields.items()}
        units = {"MiB": 1 << 20, "s": 1, "": 1}
        checked = 0
        for _, most, setting, _ in rows:
            if setting.startswith("`WEIR_"):
                number, _, unit = most.replace(",", "").partition(" ")
                assert fields[code(setting)].default == int(number) * units[unit], setting
                checked += 1
        assert checked >= 8

    def test_the_handshake(self) -> None:
        """A webhook that asks is given consent, in the headers that the page names."""
        asked = scope(webhook_request_origin="a.example", webhook_request_rate="120")
        answer: Answer = options_answer(Head(asked, 0))
        told = {name.decode(): value.decode() for name, value in answer.headers}
        assert (answer.status, told["webhook-allowed-origin"]) == (200, "a.example")
        for name in ("allow", "webhook-allowed-rate"):
            assert f"`{name}: {told[name]}`".lower() in PAGE.lower()
