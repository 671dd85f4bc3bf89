"""PostHog's capture v1, whose answer tells of each event, and what its clients ask for besides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.event_time import format_time

from .in_process import ARRIVED_MS, KEY, Asked, Request, ask
from .test_posthog import BEARER, EVENT, HAPPENED_MS, V1


def analytics(*events: Any, headers: dict[str, str] | None = None, **members: Any) -> Asked:
    """Return what becomes of a batch of v1."""
    body = json.dumps({"batch": events, **members}).encode()
    return ask(Request(V1, body, headers={**BEARER, **(headers or {})}))


class TestV1:
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_each_event_has_a_result(self, slash: str) -> None:
        """`ok` for what is stored; `drop` with the reason for what is in quarantine."""
        bad = {**EVENT, "uuid": "bad", "event": ""}
        body = json.dumps({"created_at": EVENT["timestamp"], "batch": [EVENT, bad]}).encode()

        asked = ask(Request(V1 + slash, body, headers=BEARER))

        assert (asked.status, asked.headers["content-type"]) == (200, "application/json")
        assert asked.json == {
            "results": {
                EVENT["uuid"]: {"result": "ok"},
                "bad": {
                    "result": "drop",
                    "details": 'not_an_event: an event must have event, a text, got ""',
                },
            }
        }
        assert [one["data"] for one in asked.events] == [EVENT]
        assert [reason for reason, _ in asked.refused] == ["not_an_event"]

    def test_nothing_in_it(self) -> None:
        """The answer to no events has results all the same: without them an SDK says failure."""
        assert analytics().json == {"results": {}}

    def test_uuids_as_they_were_sent(self) -> None:
        """SDKs look for the text that they sent: with its case, its escapes, or as a number."""
        events = rb'{"event":"e","distinct_id":"u","uuid":"AB\u0043"}'
        numbered = b'{"event":"e","distinct_id":"u","uuid":7,"properties":{"a":NaN}}'

        asked = ask(Request(V1, b'{"batch":[%b,%b]}' % (events, numbered), headers=BEARER))

        assert asked.json == {"results": {"ABC": {"result": "ok"}, "7": {"result": "ok"}}}

    @pytest.mark.parametrize("bad_first", [True, False])
    def test_a_uuid_twice(self, bad_first: bool) -> None:
        """Of two events with one uuid the one that was dropped is told of."""
        events = [EVENT, {**EVENT, "distinct_id": ""}]

        asked = analytics(*(reversed(events) if bad_first else events))

        assert asked.json["results"][EVENT["uuid"]]["result"] == "drop"

    @pytest.mark.parametrize("uuid", [None, "", {}, "u" * 513])
    def test_without_a_uuid_to_tell_of(self, uuid: Any) -> None:
        """A dropped event that no uuid names is told of beside the results."""
        asked = analytics(EVENT, {"uuid": uuid}, [])

        assert asked.json["results"] == {EVENT["uuid"]: {"result": "ok"}}
        assert [item["index"] for item in asked.json["items"]] == [1, 2]

    def test_sent_time_is_a_header_field(self) -> None:
        """`PostHog-Request-Timestamp` is when it was sent; `created_at` is not."""
        sent = {"PostHog-Request-Timestamp": format_time(ARRIVED_MS + 60_000)}

        (event,) = analytics(EVENT, headers=sent, created_at="2020-01-01T00:00:00Z").events

        assert event["time"] == format_time(HAPPENED_MS - 60_000)
        assert event["sentat"] == sent["PostHog-Request-Timestamp"]

    @pytest.mark.parametrize(
        ("headers", "options", "moved_ms"),
        [
            ({"PostHog-Sdk-Info": "posthog-python/7.91.1"}, {}, 0),
            ({"PostHog-Sdk-Info": "posthog-ios/3.0"}, {}, 60_000),
            ({}, {}, 60_000),
            ({}, {"disable_skew_correction": True}, 0),
            ({}, {"disable_skew_correction": False}, 60_000),
            ({}, None, 60_000),
        ],
    )
    def test_whose_clock(self, headers: dict[str, str], options: Any, moved_ms: int) -> None:
        """A server's library is told by its header field; an event may ask for its own time."""
        sent = {"PostHog-Request-Timestamp": format_time(ARRIVED_MS - 60_000)}

        (event,) = analytics({**EVENT, "options": options}, headers={**sent, **headers}).events

        assert event["time"] == format_time(HAPPENED_MS + moved_ms)

    def test_a_batch_that_cannot_be_read(self) -> None:
        """It is refused with `detail`, which SDKs report."""
        asked = ask(Request(V1, b'{"batch":', headers=BEARER))

        assert asked.status == 400
        assert asked.json["detail"].startswith("body must be JSON")


class TestPages:
    @pytest.mark.parametrize(
        ("method", "target"),
        [
            ("POST", "/flags/?v=2"),
            ("GET", "/flags"),
            ("POST", "/decide/?v=3"),
            ("GET", "/decide"),
            ("GET", "/array/phc_x/config"),
            ("GET", "/array/phc_x/config/"),
        ],
    )
    def test_what_else_clients_ask_for(self, method: str, target: str) -> None:
        """Flags and settings are empty, for pages of other origins as well, and ask for no key."""
        asked = ask(Request(target, b"{}", method, {"Origin": "https://shop.example"}))

        assert (asked.status, asked.body, asked.records) == (200, b"{}", [])
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["access-control-allow-origin"] == "https://shop.example"

    @pytest.mark.parametrize("slash", ["", "/"])
    def test_events_that_are_not_taken(self, slash: str) -> None:
        """Events of AI observability get 404, which SDKs report, and no success."""
        body = json.dumps({"api_key": KEY, "batch": [EVENT]}).encode()

        asked = ask(Request(f"/i/v0/ai/batch{slash}", body))

        assert (asked.status, asked.json["code"], asked.records) == (404, "not_found", [])
        assert asked.json["detail"] == (
            "events of AI observability are not taken here; send them to /batch"
        )

    @pytest.mark.parametrize("target", ["/array/phc_x/config.js", "/s/", "/static/array.js"])
    def test_scripts_and_recordings(self, target: str) -> None:
        """What there is not gets 404, never a server's fault."""
        assert ask(Request(target, b"{}")).status in (404, 405)
