"""The key in bodies of PostHog's clients: where it opens the door; and that it is not stored."""

from __future__ import annotations

import base64
import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir_ingest.body import BodyLimits

from .drawn import JSON
from .in_process import KEY, Request, ask
from .test_posthog import BEARER, EVENT, V1, batch

OTHER_KEY = f"wk_otherkey_{'s' * 32}"
CARRIED: list[Any] = [
    {"api_key": KEY, "batch": [EVENT]},
    {"token": KEY, "batch": [EVENT]},
    {"batch": [{**EVENT, "api_key": KEY}]},
    {"batch": [{**EVENT, "token": KEY}]},
    {"batch": [EVENT, {**EVENT, "properties": {"total": 12.5, "token": KEY}}]},
    [{**EVENT, "api_key": KEY}],
    [{**EVENT, "token": KEY}],
    [{**EVENT, "$token": KEY}],
    [{**EVENT, "properties": {"total": 12.5, "token": KEY}}],
    [7, {**EVENT, "token": KEY}],
    {**EVENT, "api_key": KEY},
    {**EVENT, "token": KEY},
    {**EVENT, "$token": KEY},
    {**EVENT, "properties": {"token": KEY, "total": 12.5}},
]


class TestCredentials:
    @pytest.mark.parametrize("shape", CARRIED, ids=str)
    def test_where_the_key_may_stand(self, shape: Any) -> None:
        """It opens the door from each of its places, and is stored from none."""
        asked = ask(Request("/e", json.dumps(shape).encode()))

        assert asked.status == 200
        assert {json.dumps(one["data"]) for one in asked.events} == {json.dumps(EVENT)}
        assert not any(KEY.encode() in one.value + one.key for one in asked.records)

    @pytest.mark.parametrize("name", [r"t\u006fken", r"api\u005fkey"])
    def test_names_with_escapes(self, name: str) -> None:
        """A name is the same name with escapes in it."""
        body = f'{{"{name}":"{KEY}","event":"e","distinct_id":"u","a":1.50}}'

        asked = ask(Request("/e", body.encode()))

        assert asked.status == 200
        assert KEY.encode() not in asked.records[0].value
        assert b'"a":1.50' in asked.records[0].value

    @pytest.mark.parametrize(
        "written",
        [
            '{"token":"K","event":"e","distinct_id":"u","a":1}',
            '{"event":"e", "token" : "K" , "distinct_id":"u","a":1}',
            '{"event":"e","distinct_id":"u","a":1,\n "api_key": "K"}',
            '{"$token":"K","token":"K","event":"e","api_key":"K","distinct_id":"u","a":1}',
            '{"token":"K","token":"K","event":"e","distinct_id":"u","a":1}',
            '{"token":"other","event":"e","distinct_id":"u","a":1,"api_key":"K"}',
        ],
    )
    def test_where_it_stands_in_an_event(self, written: str) -> None:
        """First, last, between, or more than once: what is left is the event."""
        body = f"[{written.replace('K', KEY)}]".encode()

        (event,) = ask(Request("/e", body, headers=BEARER)).events

        assert event["data"] == {"event": "e", "distinct_id": "u", "a": 1}

    @pytest.mark.parametrize(
        ("properties", "left"),
        [
            ('{"token":"K"}', {}),
            ('{"a":{"token":"K","b":1},"c":[{"api_key":"K"}]}', {"a": {"b": 1}, "c": [{}]}),
            (r'{"t\u006fken":"K"}', {"token": ""}),
            (r'{"token":"\u0077K"}', {"token": ""}),
            (r'{"a\"token":"K"}', {'a"token': KEY}),
            (r'{"a":"\"token\":\"K\""}', {"a": f'"token":"{KEY}"'}),
        ],
    )
    def test_where_it_stands_in_properties(self, properties: str, left: Any) -> None:
        """A key within properties is left out, or blank; a name or a text that holds one is not."""
        written = properties.replace(r"\u0077K", r"\u0077" + KEY[1:]).replace("K", KEY)
        body = f'[{{"event":"e","distinct_id":"u","properties":{written}}}]'

        (event,) = ask(Request("/e", body.encode(), headers=BEARER)).events

        assert event["data"]["properties"] == left

    def test_keys_by_the_thousand(self) -> None:
        """An event full of keys is not copied for each of them."""
        keys = (b'{"token":"%b"}' % KEY.encode() for _ in range(5_000))
        inner = b",".join([*[b'""'] * 150_000, *keys])
        event = b'{"event":"e","distinct_id":"u","a":[%b]}' % inner
        start_s = time.process_time()

        asked = ask(Request("/e", b"[%b]" % event, headers=BEARER))

        assert len(asked.events) == 1
        assert time.process_time() - start_s < 1

    def test_members_by_the_million(self) -> None:
        """An event of far too many members is not taken apart for the sake of a key."""
        body = b'{"token":"x",%b"z":0}' % b"".join(b'"%d":0,' % n for n in range(1_000_000))
        tracemalloc.start()

        asked = ask(Request("/e", body, headers=BEARER), body_limits=BodyLimits(len(body), 1))

        _, most_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [reason for reason, _ in asked.refused] == ["event_too_large"]
        assert most_bytes < 100 << 20

    def test_among_numbers_that_json_does_not_have(self) -> None:
        """The key is found, and left out, where the body is none for a strict parser."""
        properties = f'{{"a":NaN,"token":"{KEY}"}}'
        body = f'[{{"event":"e","distinct_id":"u","properties":{properties}}}]'

        (event,) = ask(Request("/e", body.encode())).events

        assert event["data"]["properties"] == {"a": None}

    @pytest.mark.parametrize("target", ["/e", V1])
    def test_a_key_beside_the_header(self, target: str) -> None:
        """A header field goes first; keys in the body, of PostHog's too, are stored nowhere."""
        event = {**EVENT, "token": "phc_a", "properties": {"token": "phc_b", "api_key": "own"}}
        body = json.dumps({"api_key": "phc_c", "batch": [event]}).encode()

        (found,) = ask(Request(target, body, headers=BEARER)).events

        assert found["data"] == {**EVENT, "properties": {"api_key": "own"}}

    @pytest.mark.parametrize("token", ["ETH", 7, {"a": 1}, "php_token"])
    def test_a_token_that_is_none(self, token: Any) -> None:
        """What is called a token in properties and is no key is data."""
        event = {**EVENT, "properties": {"token": token}}

        assert batch(event).events[0]["data"] == event

    def test_keys_of_two_tenants(self) -> None:
        """A list with two keys is refused, lest events are stored for somebody else."""
        events = [{**EVENT, "token": KEY}, {**EVENT, "token": OTHER_KEY}]

        asked = ask(Request("/e", json.dumps(events).encode()))
        named = ask(Request("/e", json.dumps({"api_key": KEY, "batch": events}).encode()))
        with_header = ask(Request("/e", json.dumps(events).encode(), headers=BEARER))

        assert (asked.status, asked.records) == (400, [])
        assert asked.json["code"] == "request_invalid"
        assert asked.json["message"] == (
            "events of a request must carry one key, got 2; send one for each"
        )
        assert len(named.events) == len(with_header.events) == 2

    @pytest.mark.parametrize(
        "body",
        [
            {"batch": [EVENT]},
            {"api_key": OTHER_KEY, "batch": [EVENT]},
            {"api_key": "phc_x", "batch": [EVENT]},
            {"api_key": "", "batch": []},
            {"api_key": None, "batch": []},
            [],
            EVENT,
            [*[EVENT] * 10, {**EVENT, "token": KEY}],
        ],
        ids=str,
    )
    def test_no_key_at_all(self, body: Any) -> None:
        """Without a valid key in the body, or in its first events, nothing is stored."""
        asked = ask(Request("/e", json.dumps(body).encode()))

        assert (asked.status, asked.json["code"], asked.records) == (401, "unauthorized", [])

    def test_a_key_that_is_no_unicode(self) -> None:
        """Half of a surrogate pair is no key."""
        assert ask(Request("/e", b'{"token":"\\ud800","batch":[]}')).status == 401

    @pytest.mark.parametrize("where", [{}, {"Authorization": "Bearer phc_x"}])
    def test_v1_has_it_in_the_header(self, where: dict[str, str]) -> None:
        """A key in the body is none for v1."""
        body = json.dumps({"api_key": KEY, "batch": [EVENT]}).encode()

        assert ask(Request(V1, body, headers=where)).status == 401


PLACES = st.sampled_from(["api_key", "token", "$token", "properties"])


@given(
    st.lists(st.tuples(st.dictionaries(st.text("pq"), JSON, max_size=3), PLACES), min_size=1),
    st.booleans(),
    st.booleans(),
)
def test_data_is_the_clients_but_for_the_key(
    given: list[tuple[dict[str, Any], str]], nan: bool, in_header: bool
) -> None:
    """Wherever events carry the key, each one's data is what the client wrote, without it."""
    events = [{**EVENT, "uuid": str(n), "properties": p} for n, (p, _) in enumerate(given)]
    sent: list[dict[str, Any]] = []
    for event, (properties, place) in zip(events, given, strict=True):
        inner = {"properties": {**properties, "token": KEY}}
        sent.append({**event, **(inner if place == "properties" else {place: KEY})})
    body = {"batch": sent, **({"more": float("nan")} if nan else {})}
    headers = BEARER if in_header else {}

    asked = ask(Request("/e", json.dumps(body).encode(), headers=headers))

    assert [one["data"] for one in asked.events] == events
    assert not any(KEY.encode() in one.value for one in asked.records)


def test_basic_credentials() -> None:
    """A key in Basic credentials holds here as everywhere."""
    word = base64.b64encode(f"{KEY}:".encode()).decode()
    body = json.dumps({"batch": [EVENT]}).encode()

    assert ask(Request("/e", body, headers={"Authorization": f"Basic {word}"})).status == 200
