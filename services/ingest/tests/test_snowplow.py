"""Events of Snowplow's trackers, and what is refused of them (INGEST 4.5)."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.admission import Admitted, Refused, Terms, admit
from weir.event import MAX_RECORD_BYTES
from weir.event_time import format_time
from weir.mappings.named import NAMED
from weir.problems import ProblemError, Reason
from weir_ingest.body import BodyLimits
from weir_ingest.protocols.batch import BatchLimits

from .drawn import JSON
from .in_process import ARRIVED_MS, Request, ask
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
    code_of,
    in_base64,
    payload,
    post,
)


class TestEvents:
    @pytest.mark.parametrize("kind", ["pv", "pp", "se", "ue", "tr", "ti"])
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_each_kind(self, kind: str, slash: str) -> None:
        """An event is named by its kind, is about its user, and keeps what the tracker wrote."""
        event = {**EVENT, "e": kind, **({"ue_pr": json.dumps(UNSTRUCT)} if kind == "ue" else {})}

        asked = ask(Request(f"{TP2}{slash}", payload(event), headers=BEARER))

        assert (asked.status, asked.body) == (200, b"ok")
        assert asked.headers["content-type"] == "text/plain"
        assert asked.headers["weir-position"] == "0:4711,3:4698"
        (found,) = asked.events
        assert found["type"] == f"dev.weir.snowplow.{kind}"
        assert (found["id"], found["subject"], found["ingestproto"]) == (
            EVENT["eid"],
            "u42",
            "snowplow",
        )
        assert (found["weirtenant"], found["weirsource"]) == ("acme", "web")
        assert {name: found["data"][name] for name in event if name != "ue_pr"} == {
            name: text for name, text in event.items() if name != "ue_pr"
        }

    @pytest.mark.parametrize(
        ("ids", "subject"),
        [
            ({"uid": "u", "duid": "d", "nuid": "n", "tnuid": "t"}, "u"),
            ({"duid": "d", "nuid": "n", "tnuid": "t"}, "d"),
            ({"uid": None, "duid": "", "nuid": "n", "tnuid": "t"}, "n"),
            ({"tnuid": "t", "sid": "s"}, "t"),
            ({"uid": 42}, "42"),
        ],
    )
    def test_who_it_is_about(self, ids: dict[str, Any], subject: str) -> None:
        """The user, else the domain's, else the network's id, as text; it places the record."""
        asked = post({**{n: v for n, v in EVENT.items() if n != "uid"}, **ids})

        assert asked.events[0]["subject"] == subject
        assert asked.records[0].key == subject.encode()

    def test_about_nobody(self) -> None:
        """An event without a user has no subject, and is placed by its id."""
        asked = post({name: text for name, text in EVENT.items() if name != "uid"})

        assert "subject" not in asked.events[0]
        assert asked.records[0].key == EVENT["eid"].encode()

    def test_sent_again_it_is_the_same(self) -> None:
        """An event that is sent again, with a new sent time, has the same identity."""
        asked = [post({**EVENT, "stm": str(ARRIVED_MS + late)}) for late in (0, 9_000)]

        assert asked[0].events[0]["weirid"] == asked[1].events[0]["weirid"]
        assert asked[0].records[0].key == asked[1].records[0].key
        assert asked[0].events[0]["time"] != asked[1].events[0]["time"]

    def test_without_an_id(self) -> None:
        """It gets one, each time another; with an Idempotency-Key the same."""
        body = payload({**EVENT, "eid": None})
        for more, same in ({}, False), ({"Idempotency-Key": '"k"'}, True):
            headers = {**BEARER, **more}
            found = [ask(Request(TP2, body, headers=headers)).events[0]["weirid"] for _ in "ab"]

            assert (found[0] == found[1]) is same

    @pytest.mark.parametrize(
        ("change", "reason", "detail"),
        [
            ({"e": "ad"}, "not_an_event", "e must be one of pv, pp, se, ue, tr, ti, got "),
            ({"e": None}, "not_an_event", "e must be one of pv, pp, se, ue, tr, ti, got null"),
            ({"e": 1}, "not_an_event", "e must be one of pv, pp, se, ue, tr, ti, got 1"),
            ({"eid": ""}, "id_invalid", "id must be text of 1 to 512 bytes"),
            ({"eid": {}}, "id_invalid", "id must be text of 1 to 512 bytes"),
            ({"uid": []}, "attribute_invalid", "attribute uid must be text, got []"),
            ({"uid": "a\x00"}, "invalid_unicode", "attribute uid must not hold U+0000"),
            ({"dtm": "today"}, "time_invalid", 'got "today"'),
            ({"dtm": ""}, "time_invalid", 'got ""'),
            ({"ttm": "today"}, "time_invalid", 'got "today"'),
            ({"page": [[[]] * 3] * 3, "x": json.loads("[" * 32 + "]" * 32)}, "too_deep", "32 deep"),
            ({"e": "ue"}, "not_an_event", "an event ue must have ue_px or ue_pr with a URI in "),
        ],
    )
    def test_one_bad_event_harms_no_other(
        self, change: dict[str, Any], reason: str, detail: str
    ) -> None:
        """It is kept with its reason, and the answer is a success all the same."""
        asked = post({**EVENT, **change}, {**EVENT, "eid": "good"})

        assert (asked.status, asked.body) == (200, b"ok")
        assert [one["id"] for one in asked.events] == ["good"]
        ((told, text),) = asked.refused
        assert (told, json.loads(text)) == (reason, {**EVENT, **change})
        assert detail in refusal(text).detail

    def test_no_object_is_no_event(self) -> None:
        """Elements that are no objects are kept with their reason."""
        asked = post(1, "cx", None, ["cx"], EVENT)

        assert (asked.status, len(asked.events)) == (200, 1)
        assert [reason for reason, _ in asked.refused] == ["not_an_event"] * 4

    def test_how_it_was_read_is_told(self) -> None:
        """What is refused says by which mapping it was read, and that mapping is known."""
        (record,) = post({**EVENT, "dtm": "today"}).records

        assert dict(record.headers)["weir-mapping"] == b"snowplow"
        assert "snowplow" in NAMED


def refusal(item: bytes) -> Refused:
    """Return why an item is refused, by the mapping of its name."""
    terms = Terms("acme", "web", ARRIVED_MS, "snowplow", mapping=NAMED["snowplow"])
    found = admit(item, 0, terms)
    assert isinstance(found, Refused)
    return found


class TestUnfolded:
    @pytest.mark.parametrize(
        "written",
        [
            {"ue_px": in_base64(UNSTRUCT)},
            {"ue_px": in_base64(UNSTRUCT, padded=False)},
            {"ue_px": in_base64(UNSTRUCT).replace("-", "+").replace("_", "/")},
            {"ue_pr": json.dumps(UNSTRUCT)},
            {"ue_pr": json.dumps(UNSTRUCT, indent=1, ensure_ascii=False), "ue_px": None},
            {"ue_px": in_base64(UNSTRUCT), "ue_pr": ""},
        ],
    )
    def test_a_self_describing_event(self, written: dict[str, Any]) -> None:
        """It is `unstruct`, in whichever writing it came, and its inner schema the dataschema."""
        (found,) = post({**UE, **written}).events

        assert found["data"]["unstruct"] == UNSTRUCT
        assert found["dataschema"] == ORDER["schema"]
        left = {name: text for name, text in written.items() if not text}
        assert {n: v for n, v in found["data"].items() if n != "unstruct"} == {**UE, **left}

    def test_both_alphabets_occur(self) -> None:
        """The example has padding, and the signs that the two alphabets of base64 differ in."""
        assert {"-", "_", "="} <= set(in_base64(UNSTRUCT))
        assert not in_base64(UNSTRUCT, padded=False).endswith("=")

    @pytest.mark.parametrize(
        "written", [{"cx": in_base64(CONTEXTS, padded=False)}, {"co": json.dumps(CONTEXTS)}]
    )
    def test_contexts(self, written: dict[str, Any]) -> None:
        """They are `contexts`, of an event of any kind, whose dataschema they are not."""
        (found,) = post({**EVENT, **written}).events

        assert found["data"] == {**EVENT, "contexts": CONTEXTS}
        assert "dataschema" not in found

    def test_it_stays_as_it_was_written(self) -> None:
        """Numbers and the order of members are those of the tracker."""
        inner = b'{"schema":"s","data":{"schema":"a:b","data":{"b":1.50,"a":12345678901234567890}}}'

        (record,) = post({**UE, "ue_px": in_base64(inner)}).records

        assert b'"unstruct":' + inner in record.value

    def test_names_with_escapes(self) -> None:
        """A member is known by its name, however that is written."""
        body = payload({**EVENT, "cx": in_base64(CONTEXTS)}).replace(b'"cx"', rb'"\u0063x"')

        (found,) = ask(Request(TP2, body, headers=BEARER)).events

        assert found["data"]["contexts"] == CONTEXTS

    @pytest.mark.parametrize(
        ("written", "reason", "detail"),
        [
            (
                {"ue_px": "@@@@"},
                "invalid_json",
                'ue_px must be base64url of a JSON object, got "@@',
            ),
            (
                {"ue_px": f"{in_base64(UNSTRUCT)}\n@@@"},
                "invalid_json",
                "ue_px must be base64url of",
            ),
            ({"ue_px": "eyJ9e"}, "invalid_json", "ue_px must be base64url of a JSON object"),
            ({"ue_px": "é"}, "invalid_json", "ue_px must be base64url of a JSON object"),
            ({"ue_px": 7}, "invalid_json", "ue_px must be base64url of a JSON object, got 7; "),
            ({"ue_px": in_base64(b'{"a":')}, "invalid_json", "; Input data was truncated"),
            ({"ue_px": in_base64([])}, "invalid_json", "Expected `object`, got `array`"),
            ({"ue_px": in_base64(b'{"a":"\xff"}')}, "invalid_utf8", "must be UTF-8, got byte 0xff"),
            ({"ue_pr": "{"}, "invalid_json", "ue_pr must be the text of a JSON object, got "),
            ({"ue_pr": '{},"uid":"root"'}, "invalid_json", "trailing characters"),
            ({"cx": "@"}, "invalid_json", "cx must be base64url of a JSON object, got "),
            ({"co": "[]"}, "invalid_json", "co must be the text of a JSON object, got "),
            ({"ue_px": in_base64(b'{"a":' * 33 + b"1" + b"}" * 33)}, "too_deep", "at most 32 deep"),
            ({"ue_pr": "[" * 2_000 + "]" * 2_000}, "too_deep", "ue_pr must nest at most 32 deep"),
            ({"ue_px": "e30=", "ue_pr": "{}"}, "attribute_invalid", "ue_px or ue_pr, got both"),
            ({"cx": "e30", "co": "{}"}, "attribute_invalid", "cx or co, got both"),
        ],
    )
    def test_what_cannot_be_decoded(
        self, written: dict[str, Any], reason: str, detail: str
    ) -> None:
        """Such an event is kept with its reason, all of what was sent; another is not harmed."""
        asked = post({**UE, **written}, EVENT)

        assert (asked.status, len(asked.events)) == (200, 1)
        ((told, text),) = asked.refused
        assert told == reason
        assert json.loads(text) == {**UE, **written}
        assert detail in refusal(text).detail

    @pytest.mark.parametrize(
        ("unstruct", "reason", "detail"),
        [
            (None, "not_an_event", "URI in data.schema, such as iglu:com.acme/order/jsonschema/"),
            (None, "not_an_event", "jsonschema/1-0-0, got none"),
            ({}, "not_an_event", "got Object missing required field `data`"),
            ({"data": {"schema": "no"}}, "not_an_event", 'got "no"'),
            ({"data": {"schema": "a:b c"}}, "not_an_event", 'got "a:b c"'),
            ({"data": {"schema": 1}}, "attribute_invalid", "attribute schema must be text, got 1"),
        ],
    )
    def test_what_does_not_describe_itself(self, unstruct: Any, reason: str, detail: str) -> None:
        """A self-describing event must say its schema, a URI; one that does not is kept."""
        written = {} if unstruct is None else {"ue_px": in_base64(unstruct)}

        ((told, text),) = post({**UE, **written}).refused

        assert told == reason
        assert json.loads(text).get("unstruct") == unstruct
        assert detail in refusal(text).detail

    @pytest.mark.parametrize(("depth", "stored"), [(31, 1), (32, 0)])
    def test_as_deep_as_any_data(self, depth: int, stored: int) -> None:
        """What was decoded may nest as deep, with the event around it, as all data may."""
        deepest = "[" * (depth - 2) + "]" * (depth - 2)

        asked = post({**UE, "ue_pr": f'{{"data":{{"schema":"a:b","data":{deepest}}}}}'})

        assert len(asked.events) == stored
        assert [reason for reason, _ in asked.refused] == ["too_deep"] * (1 - stored)

    @pytest.mark.parametrize(
        ("number", "reason"), [("NaN", None), ("1e400", None), ("1" * 21, "number_range")]
    )
    def test_numbers_that_json_has_not(self, number: str, reason: str | None) -> None:
        """What was decoded is judged as all data is: such a number is null or refused."""
        inner = f'{{"data":{{"schema":"a:b","data":{{"a":{number}}}}}}}'

        asked = post({**UE, "ue_px": in_base64(inner.encode())})

        assert [told for told, _ in asked.refused] == ([reason] if reason else [])
        for found in asked.events:
            assert found["data"]["unstruct"]["data"]["data"] == {"a": None}
            assert found["nulled"] == "unstruct.data.data.a"

    def test_half_a_surrogate_pair(self) -> None:
        """It is refused within what was decoded, too."""
        asked = post({**UE, "ue_px": in_base64(rb'{"data":{"schema":"a:b","x":"\ud800"}}')})

        assert [reason for reason, _ in asked.refused] == ["invalid_unicode"]

    def test_the_mapping_takes_nothing_that_was_not_judged(self) -> None:
        """An item that comes to it undecoded was judged as text alone, and is refused."""
        item = json.dumps({**EVENT, "cx": in_base64(CONTEXTS)}).encode()

        found = refusal(item)

        assert found == (Reason.NOT_AN_EVENT, "cx must be decoded; send it anew")


class TestTimes:
    @pytest.mark.parametrize(
        ("skew_ms", "members", "moved_ms", "source"),
        [
            (2_000, {}, 0, "client"),
            (2_001, {}, -2_001, "skew"),
            (-2_000, {}, 0, "client"),
            (-2_001, {}, 2_001, "skew"),
            (-60_000, {"p": "mob"}, 60_000, "skew"),
            (-60_000, {"p": "srv"}, 0, "client"),
            (-60_000, {"p": "pc"}, 0, "client"),
            (60_000, {"p": "srv"}, -60_000, "skew"),
        ],
    )
    def test_correction(
        self, skew_ms: int, members: dict[str, Any], moved_ms: int, source: str
    ) -> None:
        """A clock that is off is corrected by the sent time; a server's is only if it is ahead."""
        (found,) = post({**EVENT, "stm": str(ARRIVED_MS + skew_ms), **members}).events

        assert (found["time"], found["timesrc"]) == (format_time(CREATED_MS + moved_ms), source)
        assert found["sentat"] == str(ARRIVED_MS + skew_ms)
        assert found["clienttime"] == EVENT["dtm"]

    @pytest.mark.parametrize("true_ms", [str(CREATED_MS - 1), CREATED_MS - 1])
    def test_a_true_time(self, true_ms: str | int) -> None:
        """`ttm` goes before `dtm`, and no sent time corrects it."""
        event = {**EVENT, "ttm": true_ms, "stm": str(ARRIVED_MS + 60_000)}

        (found,) = post(event).events

        assert (found["time"], found["timesrc"]) == (format_time(CREATED_MS - 1), "client")
        assert found["data"] == event

    def test_seconds_of_the_python_tracker(self) -> None:
        """A sent time in whole seconds, before the event's own, moves nothing to the future."""
        event = {**EVENT, "dtm": str(ARRIVED_MS - 1), "stm": str(ARRIVED_MS - 1_000)}

        (found,) = post(event).events

        assert (found["time"], found["timesrc"]) == (format_time(ARRIVED_MS - 1), "client")

    @pytest.mark.parametrize("sent", ["soon", "", None, {}, True])
    def test_a_sent_time_that_is_none(self, sent: Any) -> None:
        """It corrects nothing, and costs no event."""
        (found,) = post({**EVENT, "stm": sent}).events

        assert (found["time"], found["timesrc"]) == (format_time(CREATED_MS), "client")

    def test_without_a_time(self) -> None:
        """An event without a time happened when it arrived."""
        (found,) = post({**EVENT, "dtm": None}).events

        assert (found["time"], found["timesrc"]) == (format_time(ARRIVED_MS), "arrived")


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "code", "detail"),
        [
            (b'{"data":[', "invalid_json", "body must be JSON"),
            (b"[]", "invalid_json", "body must be JSON"),
            (b"{}", "request_invalid", "body must have data, a list of events"),
            (b'{"data":{"e":"pv"}}', "request_invalid", "body must have data, a list of events"),
            (b'{"data":["\xff"]}', "invalid_utf8", "text must be UTF-8"),
            (b'{"data":' + b"[" * 100_000, "too_deep", "data must nest at most 32 deep"),
            (b"", "empty_body", "body must hold events"),
        ],
    )
    def test_a_body_that_cannot_be_read(self, body: bytes, code: str, detail: str) -> None:
        """It is refused whole with 400, on which trackers give it up; with a key or without."""
        for headers in BEARER, {}:
            if headers or body:
                asked = ask(Request(TP2, body, headers=headers))

                assert code_of(asked) == (400, code)
                assert asked.json["message"].startswith(detail)
                assert asked.headers["content-type"] == "application/problem+json"

    def test_no_events(self) -> None:
        """An empty list is a success, and stores nothing."""
        asked = post()

        assert (asked.status, asked.body, asked.records) == (200, b"ok", [])

    def test_too_many_events(self) -> None:
        """As many events as allowed are taken; one more is 400, never 413."""
        limits = BatchLimits(2, 2)

        assert len(post(EVENT, EVENT, batch_limits=limits).events) == 2
        assert code_of(post(EVENT, EVENT, EVENT, batch_limits=limits)) == (400, "too_many_events")

    def test_a_body_over_a_limit(self) -> None:
        """A body as large as allowed is taken; a larger one, sent or decoded, is 400, never 413."""
        body = payload(EVENT)
        packed = Request(TP2, gzip.compress(body), headers={**BEARER, "Content-Encoding": "gzip"})

        for over, status in (0, 200), (1, 400):
            limits = BodyLimits(len(body) - over, 10)
            assert post(EVENT, body_limits=limits).status == status
            assert ask(packed, max_decoded_bytes=len(body) - over).status == status
        assert code_of(post(EVENT, body_limits=BodyLimits(9, 10))) == (400, "body_too_large")
        assert code_of(ask(packed, max_decoded_bytes=9)) == (400, "decompressed_too_large")

    @pytest.mark.parametrize("target", [TP2, "/i?e=pv"])
    @pytest.mark.parametrize(
        ("status", "reason", "answered"),
        [
            (413, Reason.BODY_TOO_LARGE, 400),
            (415, Reason.UNSUPPORTED_ENCODING, 400),
            (403, Reason.SCOPE_MISSING, 403),
            (408, Reason.REQUEST_TIMEOUT, 408),
            (429, Reason.RATE_LIMITED, 429),
            (503, Reason.LOG_UNAVAILABLE, 503),
        ],
    )
    def test_what_is_refused_for_good(
        self, target: str, status: int, reason: Reason, answered: int
    ) -> None:
        """What a retry would meet again is 400; what may pass then is not."""
        failure = ProblemError(status, reason, "no", retry_after_s=2)
        method = "GET" if target.startswith("/i") else "POST"

        asked = ask(Request(target, payload(EVENT), method, BEARER), failure=failure)

        assert (asked.status, asked.json["status"]) == (answered, answered)
        assert (asked.json["code"], asked.headers["retry-after"]) == (reason.value, "2")

    def test_an_unknown_coding(self) -> None:
        """It is 400: on 415 trackers send the same again."""
        headers = {**BEARER, "Content-Encoding": "br"}

        assert code_of(ask(Request(TP2, payload(EVENT), headers=headers))) == (
            400,
            "unsupported_encoding",
        )

    def test_an_event_too_large(self) -> None:
        """It is kept with its reason, in part, and the request is a success."""
        asked = post({**EVENT, "page": "x" * MAX_RECORD_BYTES}, {**EVENT, "page": "x" * 900_000})

        assert (asked.status, len(asked.events)) == (200, 1)
        assert [reason for reason, _ in asked.refused] == ["event_too_large"]

    def test_a_large_event_stays_as_it_was_sent(self) -> None:
        """What is too large is not decoded first: its length is that of what came."""
        event = {**EVENT, "cx": in_base64({"a": "x" * MAX_RECORD_BYTES})}

        (record,) = post(event).records

        assert int(dict(record.headers)["weir-length"] or 0) == len(json.dumps(event))


@given(JSON, JSON, FIELDS, st.booleans(), st.booleans())
def test_data_is_what_the_tracker_meant(
    inner: Any, entity: Any, fields: dict[str, str], padded: bool, plain: bool
) -> None:
    """Whatever an event has, in whichever writing: it is the same in data, the rest unchanged."""
    unstruct = {"schema": "s:u", "data": {"schema": "s:i", "data": inner}}
    contexts = {"schema": "s:c", "data": [entity]}
    event = {**UE, **fields}
    if plain:
        written = {"ue_pr": json.dumps(unstruct), "co": json.dumps(contexts)}
    else:
        written = {
            "ue_px": in_base64(unstruct, padded=padded),
            "cx": in_base64(contexts, padded=padded),
        }

    (found,) = post({**event, **written}).events

    assert found["data"] == {**event, "unstruct": unstruct, "contexts": contexts}


@given(
    st.sampled_from(["ue_px", "ue_pr", "cx", "co"]),
    st.binary(max_size=40) | st.text().map(str.encode),
)
def test_nothing_gets_out_of_its_member(name: str, written: bytes) -> None:
    """Whatever is in such a member, it changes no other, and the event is stored or kept."""
    text = in_base64(written) if name in ("ue_px", "cx") else written.decode(errors="replace")

    asked = post({**EVENT, name: text})

    assert asked.status == 200
    assert len(asked.events) + len(asked.refused) == 1
    for found in asked.events:
        data = {n: v for n, v in found["data"].items() if n not in ("unstruct", "contexts", name)}
        assert data == EVENT


def test_a_replay_reads_it_so() -> None:
    """What is refused now and would be taken by other rules becomes the event that it was."""
    terms = Terms("acme", "web", ARRIVED_MS, "replay", mapping=NAMED["snowplow"])
    ((_, text),) = post({**UE, "ue_px": in_base64(UNSTRUCT), "dtm": "today"}).refused

    found = admit(text.replace(b'"today"', b'"2026-03-01"'), 0, terms)

    assert isinstance(found, Admitted)
    assert b'"type":"dev.weir.snowplow.ue"' in found.value
    assert json.loads(found.value)["data"]["unstruct"] == UNSTRUCT
