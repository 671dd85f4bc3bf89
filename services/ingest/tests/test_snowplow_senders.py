"""Who Snowplow's trackers send for, and how: the pixel, app ids, pages (INGEST 4.5)."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from weir.admission import Terms, admit
from weir.event_time import format_time
from weir.mappings import snowplow
from weir.problems import ProblemError, Reason
from weir_ingest.body import BodyLimits, Budget, Held, read_body
from weir_ingest.head import Head
from weir_ingest.protocols.snowplow import GIF

from .in_process import ARRIVED_MS, KEY, Request, ask
from .snowplow_requests import (
    BEARER,
    CONTEXTS,
    CREATED_MS,
    EVENT,
    FIELDS,
    ORDER,
    TP2,
    UE,
    UNSTRUCT,
    apps,
    code_of,
    get,
    in_base64,
    payload,
    post,
)


async def nothing() -> dict[str, Any]:
    """Receive the end of a body."""
    return {"type": "http.request", "body": b""}


class TestPixel:
    @pytest.mark.parametrize("path", ["/i", "/i/"])
    def test_the_answer(self, path: str) -> None:
        """An event in the query is answered with a picture that no cache keeps."""
        asked = ask(Request(f"{path}?{urlencode(EVENT)}", method="GET", headers=BEARER))

        assert (asked.status, asked.body) == (200, GIF)
        assert asked.headers["content-type"] == "image/gif"
        assert asked.headers["content-length"] == "43"
        assert asked.headers["cache-control"] == "no-cache, no-store, must-revalidate"
        (found,) = asked.events
        assert (found["id"], found["subject"], found["data"]) == (EVENT["eid"], "u42", EVENT)
        assert (found["type"], found["time"]) == ("dev.weir.snowplow.se", format_time(CREATED_MS))

    def test_the_picture(self) -> None:
        """It is a GIF of one dot, with an end."""
        assert (len(GIF), GIF[:10], GIF[-1:]) == (43, b"GIF89a\x01\x00\x01\x00", b";")

    @pytest.mark.parametrize("path", ["/i", "/i/", TP2, f"{TP2}/"])
    def test_a_health_check(self, path: str) -> None:
        """HEAD is 200 without a key, and stores nothing."""
        asked = ask(Request(f"{path}?{urlencode(EVENT)}", method="HEAD"))

        assert (asked.status, asked.body, asked.records) == (200, b"", [])

    def test_how_texts_are_written(self) -> None:
        """Percent signs, plus signs and other scripts are read; of a name twice the last counts."""
        query = (
            f"e=pv&eid=1&page=first&url={quote('https://x.test/a?b=c&d', safe='')}&page=a+%C3%A9"
        )

        (found,) = get(query).events

        assert found["data"] == {
            "e": "pv",
            "eid": "1",
            "page": "a é",
            "url": "https://x.test/a?b=c&d",
        }

    def test_what_is_left_blank(self) -> None:
        """A parameter without a value is not there."""
        (found,) = get("e=pv&eid=&dtm=&uid=&page").events

        assert (found["data"], found["timesrc"]) == ({"e": "pv"}, "arrived")

    def test_encoded_members(self) -> None:
        """They are decoded as those of a body are."""
        query = urlencode({**UE, "ue_px": in_base64(UNSTRUCT), "co": json.dumps(CONTEXTS)})

        (found,) = get(query).events

        assert found["data"] == {**UE, "unstruct": UNSTRUCT, "contexts": CONTEXTS}
        assert found["dataschema"] == ORDER["schema"]

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("", "not_an_event"),
            ("e=ue&ue_px=%40", "invalid_json"),
            ("e=pv&page=%FF", "invalid_utf8"),
            ("e=pv&%FF=1&cx=e30", "invalid_utf8"),
            ("e=pv&uid=%00", "invalid_unicode"),
            ("e=pv&dtm=now", "time_invalid"),
        ],
    )
    def test_a_bad_event(self, query: str, reason: str) -> None:
        """It is kept with its reason, and the picture comes all the same."""
        asked = get(query)

        assert (asked.status, asked.body, asked.events) == (200, GIF, [])
        assert [told for told, _ in asked.refused] == [reason]

    def test_bytes_of_a_bad_event(self) -> None:
        """What is no UTF-8 is kept as it was."""
        ((_, text),) = get("e=pv&page=%FF").refused

        assert text == b'{"e": "pv", "page": "\xff"}'

    @pytest.mark.parametrize("name", ["access_token", "%61ccess%5Ftoken"])
    def test_the_key_is_stored_nowhere(self, name: str) -> None:
        """A key in the query opens the door, and is left out; where it did not open it, too."""
        for headers in {}, BEARER:
            asked = get(f"e=pv&{name}={KEY}", headers)

            assert (asked.status, asked.events[0]["data"]) == (200, {"e": "pv"})
            assert KEY.encode() not in asked.records[0].value

    def test_only_a_get_need_not_declare_that_nothing_follows(self) -> None:
        """Where no body may be sent a GET without a length has none; of a POST it may be lost."""
        for method, refused in ("GET", False), ("POST", True):
            head = Head(Request("/i", method=method).scope(), ARRIVED_MS)
            reading = read_body(
                head, nothing, BodyLimits(9, 1), Held(Budget(9, 9)), may_be_empty=True
            )
            if refused:
                with pytest.raises(ProblemError, match="body must hold events, got none"):
                    asyncio.run(reading)
            else:
                assert asyncio.run(reading) == b""

    def test_a_body_says_nothing(self) -> None:
        """A body that comes with a GET is no part of the event, whatever its coding."""
        headers = {**BEARER, "Content-Encoding": "br"}

        asked = ask(Request("/i?e=pv", b"{}", "GET", headers))

        assert (asked.status, asked.events[0]["data"]) == (200, {"e": "pv"})


class TestWho:
    @pytest.mark.parametrize(
        "headers",
        [BEARER, {"Authorization": f"Basic {base64.b64encode(f'{KEY}:'.encode()).decode()}"}],
    )
    def test_a_key_in_a_header(self, headers: dict[str, str]) -> None:
        """A key decides alone, whatever app ids the events have."""
        body = payload(EVENT, {**EVENT, "aid": "other"}, {**EVENT, "aid": None})

        asked = ask(Request(TP2, body, headers=headers), keys=apps())

        assert [one["weirtenant"] for one in asked.events] == ["acme"] * 3

    def test_a_key_in_the_query(self) -> None:
        """`access_token` is the key of a body, too."""
        body = payload(EVENT, {**EVENT, "aid": "other"})

        asked = ask(Request(f"{TP2}?access_token={KEY}", body), keys=apps())

        assert [one["weirtenant"] for one in asked.events] == ["acme"] * 2

    @pytest.mark.parametrize("headers", [{"Authorization": "Bearer wrong"}])
    def test_a_wrong_key(self, headers: dict[str, str]) -> None:
        """It is refused, also where the app id is a listed one."""
        asked = ask(Request(TP2, payload(EVENT), headers=headers), keys=apps())

        assert code_of(asked) == (401, "unauthorized")
        assert code_of(get("e=pv&aid=shop", headers, keys=apps())) == (401, "unauthorized")

    @pytest.mark.parametrize(("aid", "tenant"), [("shop", "zeta"), (7, "eta")])
    def test_an_app_id(self, aid: Any, tenant: str) -> None:
        """Without a key a listed app id sends as its source."""
        asked = ask(Request(TP2, payload({**EVENT, "aid": aid})), keys=apps())

        assert (asked.status, asked.events[0]["weirtenant"]) == (200, tenant)
        assert get(f"e=pv&aid={aid}", {}, keys=apps()).events[0]["weirtenant"] == tenant

    @pytest.mark.parametrize("aid", ["Shop", "", None, {}, "shop ", "\ud800"])
    def test_an_unknown_app_id(self, aid: Any) -> None:
        """What no source lists opens nothing, and the refusal says what to do."""
        asked = ask(Request(TP2, payload({**EVENT, "aid": aid})), keys=apps())

        assert code_of(asked) == (401, "unauthorized")
        assert "add the app id to app_ids of a source" in asked.json["detail"]
        query = urlencode({"e": "pv", "aid": aid or ""}, errors="replace")
        assert code_of(get(query, {}, keys=apps())) == (401, "unauthorized")

    def test_nobody_at_all(self) -> None:
        """A body without events says no app id."""
        assert code_of(ask(Request(TP2, payload()), keys=apps())) == (401, "unauthorized")

    @pytest.mark.parametrize("other", ["7", "unknown", None])
    def test_events_of_another_app(self, other: str | None) -> None:
        """One app id opens the door for its own events; another's are kept with the reason."""
        body = payload(EVENT, {**EVENT, "eid": "x", "aid": other}, {**EVENT, "eid": "y"})

        asked = ask(Request(TP2, body), keys=apps())

        assert asked.status == 200
        assert [(one["weirtenant"], one["id"]) for one in asked.events] == [
            ("zeta", EVENT["eid"]),
            ("zeta", "y"),
        ]
        assert [reason for reason, _ in asked.refused] == ["attribute_invalid"]
        (record,) = (one for one in asked.records if one.headers[0][0] == "weir-reason")
        assert dict(record.headers)["weir-tenant"] == b"zeta"

    @pytest.mark.parametrize(("without", "status"), [(1, 200), (99, 200), (100, 401)])
    def test_the_first_that_says_one(self, without: int, status: int) -> None:
        """Events that say no app id do not stand in the way of the first that does; many do."""
        body = payload(*[None] * without, EVENT)

        asked = ask(Request(TP2, body), keys=apps())

        assert asked.status == status
        assert len(asked.events) == (status == 200)

    def test_nan_before_the_app_id(self) -> None:
        """An app id is found in events that are no strict JSON, too."""
        body = payload({**EVENT, "page": float("nan")})

        assert ask(Request(TP2, body), keys=apps()).events[0]["nulled"] == "page"

    def test_before_anybody_is_known(self) -> None:
        """Before the definitions were read it is 503: on 401 trackers drop events."""
        keys = apps(ready=False)

        assert code_of(ask(Request(TP2, payload(EVENT)), keys=keys)) == (503, "log_unavailable")
        assert code_of(get("e=pv&aid=shop", {}, keys=keys)) == (503, "log_unavailable")

    def test_why_another_apps_event_is_refused(self) -> None:
        """The reason says what was required, what came and what to do."""
        terms = Terms("a", "s", ARRIVED_MS, "snowplow", mapping=snowplow.mapping("shop"))

        found = admit(json.dumps({**EVENT, "aid": "7"}).encode(), 0, terms)

        assert found == (
            Reason.ATTRIBUTE_INVALID,
            'aid must be "shop" as in the first event of the request, got "7"; send the events '
            "of each app by themselves, or send a key",
        )


class TestBrowsers:
    def test_anonymous(self) -> None:
        """`SP-Anonymous` changes nothing: no address is stored and no cookie set anyway."""
        asked = [
            ask(Request(TP2, payload(EVENT), headers={**BEARER, **more}))
            for more in ({}, {"SP-Anonymous": "*", "X-Forwarded-For": "203.0.113.7"})
        ]

        for one in asked:
            assert "set-cookie" not in one.headers
            one.events[0].pop("requestid")
            assert b"203.0.113.7" not in one.records[0].value
        first, second = ({**one.events[0], "requestid": ""} for one in asked)
        assert first == second

    @pytest.mark.parametrize(("path", "method"), [(TP2, "POST"), ("/i", "GET")])
    def test_preflight(self, path: str, method: str) -> None:
        """A page of any origin may send, with credentials and with `SP-Anonymous`."""
        headers = {"Origin": "https://shop.test", "Access-Control-Request-Method": method}

        asked = ask(Request(path, method="OPTIONS", headers=headers))

        assert asked.status == 204
        assert asked.headers["access-control-allow-origin"] == "https://shop.test"
        assert asked.headers["access-control-allow-credentials"] == "true"
        allowed = asked.headers["access-control-allow-headers"].split(", ")
        assert {"content-type", "sp-anonymous"} <= set(allowed)
        assert method in asked.headers["access-control-allow-methods"]

    def test_answers_can_be_read(self) -> None:
        """The answer to a page, a refusal too, mirrors its origin."""
        for headers in BEARER, {}:
            asked = ask(
                Request(TP2, payload(EVENT), headers={**headers, "Origin": "https://a.test"})
            )

            assert asked.headers["access-control-allow-origin"] == "https://a.test"
            assert asked.headers["access-control-allow-credentials"] == "true"


@given(FIELDS)
def test_a_query_says_what_a_body_says(fields: dict[str, str]) -> None:
    """The same event is the same, whether it comes in a body or in a query."""
    event = {**EVENT, **fields}

    (posted,) = post(event).events
    (asked,) = get(urlencode(event)).events

    assert {**posted, "requestid": ""} == {**asked, "requestid": ""}
