"""What may become an event: laws of admission, and the quick way against the careful one."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from weir import event
from weir.admission import Admitted, Refused, Terms, admit, admit_foreign, uuid7
from weir.event_time import parse_time
from weir.json_exact import is_deeper, is_plain, mend, parsable
from weir.problems import Reason
from weir.quick import admit_all
from weir.refusal import ItemRefusedError

ARRIVED_MS = 1_772_359_200_500
REQUEST = "0190a2c4-0000-7000-8000-000000000001"
LENIENT = Terms("acme", "web", ARRIVED_MS, "ndjson", request_id=REQUEST, seed=2**71 + 5)
STRICT = Terms("acme", "web", ARRIVED_MS, "cloudevents", strict=True, request_id=REQUEST)
TYPED = Terms("acme", "web", ARRIVED_MS, "json", False, REQUEST, "given", "sub", "key-1")
TERMS = [LENIENT, STRICT, TYPED, replace(LENIENT, time_field="date")]

TIMES = [
    "2026-03-01T10:00:00.123Z",
    "2026-03-01T10:00:00Z",
    "2026-03-01T11:00:00+01:00",
    "2026-03-01 10:00:00",
    "2026-02-30T00:00:00Z",
    "2026-03-01T10:00:0 Z",
    "2999-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2026-03-01T10:00:00Z\n",
    "\t2026-03-01T11:00:00+01:00",
    "2026-03-01T10:00:00\nZ",
    "\u00a02026-03-01\u2003",
    " 1772359200 ",
    "",
]
TEXTS = st.sampled_from(
    ["", "a", "u42", "é", 'q"', "back\\slash", "\x01", "\u00a0", "\ufffe", "x" * 600]
)
SCALARS = st.one_of(TEXTS, st.integers(-5, 5), st.booleans(), st.none(), st.floats(allow_nan=True))
MEMBERS = {
    "specversion": st.sampled_from(["1.0", "0.3", "", None]),
    "id": SCALARS,
    "source": SCALARS,
    "type": SCALARS,
    "time": st.one_of(st.sampled_from(TIMES), st.just(ARRIVED_MS), st.just(1.5e9), SCALARS),
    "timestamp": st.one_of(st.sampled_from(TIMES), st.just(ARRIVED_MS - 1), SCALARS),
    "date": st.one_of(st.sampled_from(TIMES), st.floats(1e9, 2e9), SCALARS),
    "subject": SCALARS,
    "partitionkey": SCALARS,
    "sentat": st.sampled_from(TIMES),
    "datacontenttype": TEXTS,
    "extension": SCALARS,
    "weirtenant": TEXTS,
    "Upper": TEXTS,
    "with_underscore": TEXTS,
    "data": st.one_of(SCALARS, st.dictionaries(TEXTS, SCALARS), st.lists(SCALARS)),
}


EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "t",
    "data": {"a": 1},
}
BARE: dict[str, Any] = {"user": "u", "timestamp": "2026-03-01T09:00:00Z"}


@st.composite
def items(draw: st.DrawFn) -> bytes:
    """Draw an object with members of an event: mostly a usual one with something odd about it."""
    usual = draw(st.sampled_from([{}, BARE, EVENT, EVENT]))
    odd = draw(st.lists(st.sampled_from(sorted(MEMBERS)), unique=True, max_size=2 if usual else 9))
    value = {**usual, **{name: draw(MEMBERS[name]) for name in odd}}
    if usual is EVENT and draw(st.booleans()):
        value["time"] = draw(st.sampled_from(TIMES))
    return json.dumps(value, ensure_ascii=draw(st.booleans())).encode()


# One second in several zones and forms: what is remembered of one must not tell the next.
RUN_TIMES = [
    "2026-03-01T10:00:00.123Z",
    "2026-03-01T10:00:00.9x9Z",
    "2026-03-01T10:00:00Z",
    "2026-03-01T10:00:00.123+01:00",
    "2026-03-01T10:00:00+01:00",
    "2026-03-01T10:00:00.1+01",
    "2026-03-01T10:00:00,123Z",
    "2026-03-01T10:00:00.123z",
    "2026-03-01T09:59:60.500Z",
    "2026-03-01T10:00:60.500Z",
]
RUN_DATA = [
    b"1",
    b"null",
    b"{}",
    b'{"a":[1,{"b":[]}]}',
    b'{"a":\n1}',
    b'"]"',
    b'"[{"',
    b'"NaN"',
    *(b"[" * depth + b"]" * depth for depth in (30, 31, 32, 33, 34)),
]


@st.composite
def runs(draw: st.DrawFn) -> list[bytes]:
    """Draw items of one form, one or two of them odd."""
    bare = draw(st.booleans())
    found = []
    for n in range(draw(st.integers(2, 6))):
        time = b'"%s"' % draw(st.sampled_from(RUN_TIMES)).encode()
        data = draw(st.sampled_from(RUN_DATA)) if draw(st.integers(0, 3)) == 0 else b'{"x":1}'
        if bare:
            found.append(b'{"timestamp":%b,"n":%d,"x":%b}' % (time, n, data))
        else:
            source = draw(st.sampled_from([b"/a", b"/b"]))
            found.append(
                b'{"specversion":"1.0","id":"%d","source":"%b","type":"t","time":%b,"data":%b}'
                % (n, source, time, data)
            )
    if draw(st.booleans()):
        found[draw(st.integers(0, len(found) - 1))] = draw(items())
    return found


class TestQuickWay:
    @settings(max_examples=200, deadline=None)
    @given(st.lists(items(), min_size=1, max_size=4), st.sampled_from(TERMS))
    def test_equals_the_careful_way(self, found: list[bytes], terms: Terms) -> None:
        """The quick way gives what the careful way gives, to the byte."""
        want = [admit(item, position, terms) for position, item in enumerate(found, 3)]

        assert admit_all(found, 3, terms) == want

    @settings(max_examples=300, deadline=None)
    @given(runs(), st.sampled_from(TERMS))
    def test_a_run_equals_the_careful_way(self, found: list[bytes], terms: Terms) -> None:
        """What is looked for once in all items is found in each: times, depth, line ends, forms."""
        want = [admit(item, position, terms) for position, item in enumerate(found, 3)]

        assert admit_all(found, 3, terms) == want

    @pytest.mark.parametrize(
        "body",
        [
            b'{"a":1,\n"b":2}{"c":3}',
            b'{"a":\n"x","weirtenant":"victim"\n}{"c":1}{"d":1}',
            b'{"a":1}{"b":2}\n{"c":\n3}',
            b'{"a":1}\n{"b":2}{"c":3}\n{"d":\n4}',
            b'{"id":"1","type":"t","data":{"a":\n{"b":1}}}{"id":"2","type":"t","data":1}',
            b'{"a":[1,\n2]}{"b":1}',
            b'1\n{"a":1}',
            b'{"a":1}\n[]',
        ],
    )
    @pytest.mark.parametrize("terms", TERMS)
    def test_no_item_is_read_on_in_the_next(self, body: bytes, terms: Terms) -> None:
        """An item that breaks off is refused, whatever follows: half of one would be stored."""
        lines = body.split(b"\n")
        want = [admit(line, position, terms) for position, line in enumerate(lines)]

        assert admit_all(lines, 0, terms) == want

    @pytest.mark.parametrize("item", [EVENT, BARE], ids=["event", "bare"])
    def test_alike_items_are_read_at_once(
        self, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run of usual items needs no look at each; else the test above proves little."""
        found = [json.dumps({**item, "n" if item is BARE else "id": str(n)}) for n in range(9)]
        lines = [one.encode() for one in found]
        want = [admit(line, position, LENIENT) for position, line in enumerate(lines)]
        for way in ("weir.admission.admit", "weir.quick.Quick.admit"):
            monkeypatch.setattr(way, None)

        assert admit_all(lines, 0, LENIENT) == want

    @pytest.mark.parametrize(
        "said", [b"1e400", b"-1e400", b"NaN", b"Infinity", b"123456789012345678901"]
    )
    @pytest.mark.parametrize("data", [b'{"x":%s,"x":1}', b'{"x":{"x":%s},"x":1}', b'{"x":[%s]}'])
    def test_numbers_that_json_cannot_hold(self, data: bytes, said: bytes) -> None:
        """Also under a name that comes again, which nothing tells of any more."""
        item = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":%s}' % (data % said)
        want = admit(item, 0, LENIENT)

        assert admit_all([item], 0, LENIENT) == [want]
        assert isinstance(want, Refused) or b"e400" not in want.value

    @pytest.mark.parametrize(
        "line",
        [
            b'{"type":"t","id":"1","time":"2026-03-01T09:00:00Z","data":{"a":1}}',
            b'{"type":"t","id":"1","time":"2026-03-01T09:00:00.123Z","subject":"s","data":[]}',
            b'{"specversion":"1.0","source":"/s","partitionkey":"k","type":"t","id":"1","data":0}',
            b'{"a":1,"timestamp":"2026-03-01T09:00:00.123Z"}',
            b'{"a":"\xc3\xa9","date":1772000000.5}',
            b'{"type":"click","user":"u"}',
        ],
    )
    def test_usual_items_go_the_quick_way(
        self, line: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What clients mostly send needs no second look; else the test above proves little."""
        want = admit(line, 0, LENIENT)
        monkeypatch.setattr("weir.admission.admit", None)

        assert admit_all([line], 0, LENIENT) == [want]


class TestAdmit:
    def test_golden_record(self) -> None:
        """The record of a known event is the one that was always written."""
        found = admit(
            b'{"type":"order.placed","id":"o-1","subject":"u42","data":{"total":12.50}}', 2, LENIENT
        )

        assert isinstance(found, Admitted)
        assert found.value == (
            b'{"weirid":"a7c9ed7e6e6c0a844cb89a515510c3a3","weirms":"+001772359200500",'
            b'"specversion":"1.0","id":"o-1","source":"urn:weir:src:web","type":"order.placed",'
            b'"time":"2026-03-01T10:00:00.500Z","weirtenant":"acme","weirsource":"web",'
            b'"arrivedat":"2026-03-01T10:00:00.500Z","timesrc":"arrived","ingestproto":"ndjson",'
            b'"requestid":"0190a2c4-0000-7000-8000-000000000001","requestpos":2,"subject":"u42",'
            b'"datacontenttype":"application/json","data":{"total":12.50}}'
        )
        assert found.key == b"u42"
        assert found.retry_safe

    @given(items(), st.sampled_from([LENIENT, STRICT]))
    @example(b'{"data": "", "partitionkey": 1}', LENIENT)
    def test_a_record_reads_back(self, item: bytes, terms: Terms) -> None:
        """Every admitted record is JSON, says one thing only, and tenant is the credential's."""
        found = admit(item, 0, terms)

        if isinstance(found, Admitted):
            said = event.read_event(found.value)
            assert (said["weirtenant"], said["weirsource"]) == ("acme", "web")
            assert found.digest == event.identity_digest("acme", said["source"], said["id"])
            assert event.placed(found.value).time_ms == found.time_ms == parse_time(said["time"])
            assert admit_foreign(found.value, received_ms=1, recheck=True) == Admitted(
                found.value, found.key, found.time_ms
            )

    @given(items(), st.integers(0, 10**6))
    def test_a_retry_repeats_key_and_identity(self, item: bytes, later_ms: int) -> None:
        """An item with an id, sent again later, reaches the same partition as the same event."""
        first = admit(item, 0, LENIENT)
        again = Terms("acme", "web", ARRIVED_MS + later_ms, "ndjson", request_id="other", seed=9)
        second = admit(item, 0, again)

        if isinstance(first, Admitted) and first.retry_safe and isinstance(second, Admitted):
            assert (first.key, first.digest) == (second.key, second.digest)

    @pytest.mark.parametrize("time", [r"\n2026-03-01T09:00:00Z\t", r"2026-03-01T09:00:00\nZ"])
    @pytest.mark.parametrize(
        "item", ['{"type":"t","id":"1","data":0,"time":"%s"}', '{"a":1,"date":"%s"}']
    )
    def test_white_space_in_a_time(self, item: str, time: str) -> None:
        """White space around a time is passed over, and the record stays JSON."""
        (found,) = admit_all([(item % time).encode()], 0, LENIENT)

        assert isinstance(found, Admitted)
        said = event.read_event(found.value)
        assert said["time"] == "2026-03-01T09:00:00.000Z"
        assert "clienttime" not in said

    @pytest.mark.parametrize("member", ["partitionkey", "subject"])
    @pytest.mark.parametrize(("length", "fits"), [(499_000, True), (500_000, False)])
    def test_a_long_key_counts_twice(self, member: str, length: int, fits: bool) -> None:
        """Value and key share the bound: a text that stands in both is counted in both."""
        item = b'{"type":"t","id":"1","data":0,"%s":"%s"}' % (member.encode(), b"k" * length)

        (found,) = admit_all([item], 0, LENIENT)

        if fits:
            assert isinstance(found, Admitted)
            assert len(found.value) + len(found.key) <= event.MAX_RECORD_BYTES
        else:
            assert isinstance(found, Refused)
            assert found.reason is Reason.EVENT_TOO_LARGE
            assert "at most 1000000 bytes with its key, got 1000" in found.detail

    def test_names_of_ours_are_dropped(self) -> None:
        """What a client sends under a name that starts with `weir` is not kept."""
        found = admit(
            b'{"type":"t","id":"1","data":1,"weirtenant":"x","WeirOther":"x"}', 0, LENIENT
        )

        assert isinstance(found, Admitted)
        assert b'"x"' not in found.value

    def test_idempotency_key_makes_ids_repeat(self) -> None:
        """Items without an id get the same one under the same key, place and bytes only."""
        first = admit(b'{"a":1}', 0, TYPED)

        assert first == admit(b'{"a":1}', 0, TYPED)
        assert isinstance(first, Admitted)
        assert first.retry_safe
        assert first != admit(b'{"a":1}', 1, TYPED)

    @pytest.mark.parametrize(
        ("item", "is_event"),
        [
            (b'{"type":"t","data":{},"other":{"a":1}}', None),
            (b'{"type":"t","subject":"s"}', True),
            (b'{"type":"t","user":"s"}', False),
            (b'{"id":"1","data":{}}', True),
            (b'{"id":"1","time":"2026-01-01"}', False),
            (b'{"type":7,"data":1,"x":2}', False),
        ],
    )
    def test_envelope_or_data(self, item: bytes, is_event: bool | None) -> None:
        """An object is an event or all data by the names of its members alone."""
        found = admit(item, 0, LENIENT)

        if is_event is None:
            assert isinstance(found, Refused)
            assert found.reason is Reason.ATTRIBUTE_INVALID
        else:
            assert isinstance(found, Admitted)
            said = event.read_event(found.value)
            assert (said.get("data") == json.loads(item)) is not is_event


class TestForeign:
    GOOD = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2026-01-01T00:00:00Z"}'

    def test_an_event_of_another_producer(self) -> None:
        """A CloudEvent from elsewhere is admitted for the default tenant, whatever it claims."""
        value = self.GOOD[:-1] + b',"weirtenant":"acme","weirid":"x"}'

        found = admit_foreign(value, received_ms=ARRIVED_MS)

        assert isinstance(found, Admitted)
        said = event.read_event(found.value)
        assert (said["weirtenant"], said["weirsource"]) == ("default", "kafka")
        assert found.digest == event.identity_digest("default", "/s", "1")

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (None, Reason.NOT_AN_EVENT),
            (b"\x00\x01", Reason.NOT_AN_EVENT),
            (b"not json", Reason.NOT_AN_EVENT),
            (b"{}", Reason.NOT_AN_EVENT),
            (b'"\xff"', Reason.INVALID_UTF8),
            (GOOD[:-1] + b',"data":' + b"[" * 33 + b"]" * 33 + b"}", Reason.TOO_DEEP),
            (GOOD[:-1] + b',"data":18446744073709551616}', Reason.NUMBER_RANGE),
            (GOOD.replace(b"2026-01-01", b"2026-02-30"), Reason.TIME_INVALID),
        ],
    )
    def test_refused(self, value: bytes | None, reason: Reason) -> None:
        """Bytes of another producer are refused by the same checks as a client's."""
        found = admit_foreign(value, received_ms=ARRIVED_MS)

        assert isinstance(found, Refused)
        assert found.reason is reason

    def test_a_forged_identity_is_found(self) -> None:
        """A record that claims to be ours but has another event's identity is refused."""
        ours = admit(b'{"type":"t","id":"1","data":1}', 0, LENIENT)
        assert isinstance(ours, Admitted)

        forged = ours.value.replace(b'"id":"1"', b'"id":"2"')

        assert isinstance(admit_foreign(forged, received_ms=1, recheck=True), Refused)

    def test_pickles(self) -> None:
        """The function goes to a Spark worker as it is."""
        assert pickle.loads(pickle.dumps(admit_foreign)) is admit_foreign  # noqa: S301


def least_cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the quickest of three runs: what others do beside it drops out."""
    found = []
    for _ in range(3):
        began_s = time.process_time()
        work()
        found.append(time.process_time() - began_s)
    return min(found)


class TestJson:
    @given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
    def test_what_json_holds_is_not_touched(self, value: Any) -> None:
        """Mending leaves a text alone unless it holds a number that JSON cannot."""
        text = json.dumps(value).encode()
        mended = mend(text)

        if not mended.nulled:
            assert mended.text == text
        json.loads(mended.text, parse_constant=pytest.fail)
        assert len(parsable(text)) == len(text)

    @pytest.mark.parametrize(
        ("text", "plain"),
        [
            (b'{"a":"3f4e1234-9"}', False),
            (b'{"a":123456789012345}', True),
            (b'{"a":1e99}', True),
            (b'{"a":1e400}', False),
            (b'{"a":1E+400}', False),
            (b'{"a":12345678901234567890}', False),
            ('{"a":"é"}'.encode(), False),
            (b'{"a":"\\n"}', False),
        ],
    )
    def test_plain(self, text: bytes, plain: bool) -> None:
        """The scan lets through only what cannot need the exact path."""
        assert is_plain(text) is plain

    @pytest.mark.parametrize(
        ("text", "mended", "nulled"),
        [
            (b'{"NaN":NaN,"b":["-Infinity",-Infinity]}', b'{"NaN":null,"b":["-Infinity",null]}', 2),
            (b'["\\"NaN",Infinity]', b'["\\"NaN",null]', 1),
            (b'["\\\\",NaN,"NaN"]', b'["\\\\",null,"NaN"]', 1),
            (b"[1e400,-1E+400,1e308,1.5]", b"[null,null,1e308,1.5]", 2),
            (b"[" + b"9" * 400 + b".5,1]", b"[null,1]", 1),
            (b'["' + b"9" * 30 + b'",NaN]', b'["' + b"9" * 30 + b'",null]', 1),
            (b"[" + b"NaN," * 30 + b"1]", b"[" + b"null," * 30 + b"1]", 20),
        ],
    )
    def test_mended(self, text: bytes, mended: bytes, nulled: int) -> None:
        """What JSON cannot hold becomes null, outside strings only, and the first 20 are named."""
        found = mend(text)

        assert found.text == mended
        assert len(found.nulled) == nulled

    @pytest.mark.parametrize("text", [b"-9223372036854775809", b"18446744073709551616", b"9" * 30])
    def test_integers_beyond_64_bits(self, text: bytes) -> None:
        """An integer that no 64 bits hold is refused, on either side of zero."""
        (found,) = admit_all([b'{"a":' + text + b"}"], 0, LENIENT)

        assert isinstance(found, Refused)
        assert found.reason is Reason.NUMBER_RANGE

    @pytest.mark.parametrize(
        ("text", "whole"),
        [
            (rb'"\ud83d\ude00 \u0041"', True),
            (rb'"\ud83d"', False),
            (rb'"\ude00"', False),
            (rb'"\ude00\ud83d"', False),
            (rb'"\ud83d\ud83d\ude00"', False),
            (rb'"\ud83d\ude00\ude00"', False),
            (rb'"\\ud83d"', True),
            (rb'"\\\ud83d"', False),
            (rb'"\uD83D\uDE00"', True),
        ],
    )
    def test_halves_of_pairs(self, text: bytes, whole: bool) -> None:
        """Half of a surrogate pair is found wherever it stands; an escaped backslash is none."""
        if whole:
            assert mend(text).text == text
        else:
            with pytest.raises(ItemRefusedError, match="half of a surrogate pair"):
                mend(text)
        json.loads(parsable(text))

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "unit", [b"NaN,", b"1.5,", b'"",', b"[],", b"1e400,", b'"\\u0041",', b"-Infinity,"]
    )
    def test_the_oddest_megabyte(self, unit: bytes) -> None:
        """A megabyte of any shape costs no seconds: nobody waits behind it."""
        item = b'{"a":[NaN,' + unit * (950_000 // len(unit)) + b"1]}"

        judged_s = least_cpu_s(lambda: admit_all([item], 0, LENIENT))

        # 0.02 to 0.3 s at present; a step that looks at the rest for each token takes minutes.
        assert judged_s < 2

    def test_depth_is_counted_outside_strings(self) -> None:
        """Brackets in strings do not nest."""
        assert not is_deeper(b'["' + b"[" * 50 + b'"]', 2)
        assert is_deeper(b'["\\"", [[1]]]', 2)

    def test_hostile_strings_are_scanned_once(self) -> None:
        """A megabyte of escaped quotes without an end takes no quadratic time."""
        assert not is_deeper(b'"' + b'\\"' * 500_000 + b"[" * 40, 32)


def test_uuid7() -> None:
    """An assigned id is a UUIDv7 of its time."""
    assert uuid7(ARRIVED_MS, 5) == "019ca8d7-2ef4-7000-8000-000000000005"


class TestTimeField:
    @pytest.mark.parametrize(
        ("path", "item", "time"),
        [
            ("ts", '{"ts":"2026-03-01T09:00:00Z","timestamp":"2020-01-01"}', "09:00:00.000"),
            ("ts", '{"ts":1772355600}', "09:00:00.000"),
            ("meta.at", '{"meta":{"at":"2026-03-01T09:00:00Z"}}', "09:00:00.000"),
            ("meta.at", '{"meta.at":"2026-03-01T08:00:00Z","meta":{"at":1}}', "08:00:00.000"),
            ("meta.at.ms", '{"meta":{"at":{"ms":1772355600000}}}', "09:00:00.000"),
            ("ts", '{"ts":null,"timestamp":"2026-03-01T07:00:00Z"}', "07:00:00.000"),
            ("ts", '{"date":"2026-03-01T07:00:00Z"}', "07:00:00.000"),
            ("meta.at", '{"meta":"2026-03-01T09:00:00Z"}', None),
            ("meta.at", '{"meta":[{"at":1772355600}]}', None),
        ],
    )
    def test_where_it_says(self, path: str, item: str, time: str | None) -> None:
        """A source's field goes first; without it the usual members say it, else the arrival."""
        found = admit(item.encode(), 0, replace(LENIENT, time_field=path))

        assert isinstance(found, Admitted)
        said = json.loads(found.value)
        if time is None:
            assert said["timesrc"] == "arrived"
        else:
            assert said["time"] == f"2026-03-01T{time}Z"

    def test_a_field_that_is_no_time(self) -> None:
        """It is refused as any time is, and not passed over."""
        found = admit(b'{"ts":"soon","date":1772355600}', 0, replace(LENIENT, time_field="ts"))

        assert isinstance(found, Refused)
        assert found.reason is Reason.TIME_INVALID

    def test_an_envelope_says_its_own(self) -> None:
        """An event in an envelope says when it happened; the field is for bare objects."""
        item = b'{"type":"t","id":"1","data":{"ts":1772355600}}'

        assert admit(item, 0, replace(LENIENT, time_field="data.ts")) == admit(item, 0, LENIENT)
