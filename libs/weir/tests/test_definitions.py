"""The check of definitions: defaults, refusals with place and mend, estimates."""

from __future__ import annotations

import json
import time
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.board import Board
from weir.definitions.budget import estimate
from weir.definitions.check import check
from weir.definitions.durations import format_duration, parse_duration_ms
from weir.definitions.kinds import KINDS
from weir.definitions.metric import Metric
from weir.definitions.text import parse_texts, split_text
from weir.expressions import NotMatched, Path, Quarantined, Used, use
from weir.problems import ProblemError, Reason
from weir.sketches import kll_k

CHECKOUT = """
kind: metric
name: checkout_latency                 # a comment
events: {type: "com.acme.http.request"}
where: "data.status < 500 and data.env = 'prod'"
value: data.latency_ms
unit: ms
by: [data.region, data.route]
aggregates: [count, rate, avg, min, max, p50, p95, p99, distinct(subject)]
resolution: 10s
keep: {10s: 24h, 1m: 7d, 1h: 90d}
allowed_lateness: 1m
max_series: 1000
"""


def metric(**members: Any) -> Metric:
    """Return a checked metric."""
    model = check("metric", "m", {"events": {"type": "t"}, **members}).model
    assert isinstance(model, Metric)
    return model


def refusal(given_text: Any, **options: Any) -> ProblemError:
    """Return the refusal of a definition."""
    with pytest.raises(ProblemError) as caught:
        check(None, None, given_text, **options)
    assert caught.value.status == 422
    return caught.value


def error_of(**members: Any) -> dict[str, Any]:
    """Return the first error of a metric with these members."""
    return refusal({"kind": "metric", "name": "m", "events": {"type": "t"}, **members}).errors[0]


class TestMetric:
    def test_everything_said(self) -> None:
        """What the engine and the readers ask of a metric is told in their units."""
        model = check("metric", "checkout_latency", CHECKOUT).model
        assert isinstance(model, Metric)
        assert model.resolution_ms == 10_000
        assert model.lateness_ms == 60_000
        assert model.keep_ms == {10_000: 86_400_000, 60_000: 604_800_000, 3_600_000: 7_776_000_000}
        assert model.dimension_names == ("region", "route")
        assert model.dimension("region") == model.dimension("data.region") == 0
        assert model.dimension("nope") is None
        assert model.percentiles == (50.0, 95.0, 99.0)
        assert model.needs_kll
        assert model.needs_hll
        assert model.kll_k == kll_k((0.5, 0.95, 0.99))
        assert model.distinct_path == Path(("subject",))
        assert {str(path) for path in model.paths} == {
            "data.status",
            "data.env",
            "data.latency_ms",
            "data.region",
            "data.route",
            "subject",
        }

    def test_defaults_of_a_count(self) -> None:
        """With nothing but its events a metric counts them in panes of ten seconds."""
        model = metric()
        assert model.aggregates == ("count", "rate")
        assert model.resolution_ms == 10_000
        assert list(model.keep_ms) == [10_000, 60_000, 3_600_000]
        assert model.lateness_ms == 60_000
        assert model.max_series == 1_000
        assert (model.kll_k, model.needs_kll, model.needs_hll) == (0, False, False)

    def test_defaults_of_a_measure(self) -> None:
        """With a value it is averaged, and its least and greatest are kept."""
        assert metric(value="data.x").aggregates == ("count", "avg", "min", "max")

    @pytest.mark.parametrize("resolution", ["1s", "10s", "1m", "1h"])
    def test_default_keep_begins_at_the_resolution(self, resolution: str) -> None:
        """No default keeps anything finer than what is counted."""
        assert min(metric(resolution=resolution).keep_ms) == parse_duration_ms(resolution)

    def test_what_is_said_otherwise_means_the_same(self) -> None:
        """A path and an aggregate have one spelling in what was understood."""
        found = metric(by=['data."a"'], value="data.x", aggregates=["p05", "p99.90", "top(data.u)"])
        assert found.by == ("data.a",)
        assert found.aggregates == ("p5", "p99.9", "top(data.u, 10)")

    def test_names_of_dimensions_that_end_alike(self) -> None:
        """Two dimensions with the same last name are called by their paths."""
        model = metric(by=["data.a.id", "data.b.id", "data.c"])
        assert model.dimension_names == ("data.a.id", "data.b.id", "c")

    @pytest.mark.parametrize(
        ("types", "event_type", "selected"),
        [
            ("t", "t", True),
            ("t", "tt", False),
            (["a", "b"], "b", True),
            ("com.acme.*", "com.acme.order", True),
            ("com.acme.*", "com.acmeorder", False),
            ("*", "", True),
            (["x", "t*"], "t1", True),
        ],
    )
    def test_selection_by_type(self, types: Any, event_type: str, selected: bool) -> None:
        """A type is itself, a list any of it, and a star stands for every ending."""
        assert metric(events={"type": types}).events.matches_type(event_type) is selected

    def test_canonical_is_the_same_for_the_same_meaning(self) -> None:
        """Order, comments and written-out defaults do not make another definition."""
        one = check(None, None, CHECKOUT).canonical
        assert check(None, None, json.loads(one)).canonical == one
        assert check(None, None, CHECKOUT.replace("24h", "1d")).canonical == one
        assert check(None, None, CHECKOUT.replace("24h", "2d")).canonical != one


class TestUse:
    METRIC: ClassVar[dict[str, Any]] = {
        "value": "data.ms / data.n",
        "by": ["data.region"],
        "where": "data.env = 'prod'",
        "aggregates": ["avg", "distinct(data.user)"],
        "events": {"type": "t", "source": "web"},
    }

    @pytest.mark.parametrize(
        ("data", "outcome"),
        [
            ({"env": "prod", "ms": 6, "n": 2, "region": "eu"}, Used("=eu", 3.0, None)),
            ({"env": "prod", "ms": 6, "n": 2, "user": 7}, Used("~", 3.0, "7")),
            ({"env": "test", "ms": 6, "n": 2}, NotMatched()),
            ({"ms": 6, "n": 2}, NotMatched()),
            ({"env": "prod", "ms": 6}, Quarantined(Reason.VALUE_MISSING)),
            ({"env": "prod", "ms": None, "n": 2}, Quarantined(Reason.VALUE_MISSING)),
            ({"env": "prod", "ms": "7", "n": 2}, Quarantined(Reason.VALUE_INVALID)),
            ({"env": "prod", "ms": True, "n": 2}, Quarantined(Reason.VALUE_INVALID)),
            ({"env": "prod", "ms": 6, "n": 0}, Quarantined(Reason.VALUE_INVALID)),
            ({"env": "prod", "ms": 1e101, "n": 1}, Quarantined(Reason.VALUE_RANGE)),
            ({"env": "prod", "ms": -1e100, "n": 1}, Used("~", -1e100, None)),
            ({"env": "prod", "ms": 6, "n": 2, "region": {}}, Quarantined(Reason.VALUE_INVALID)),
            ({"env": "prod", "ms": 6, "n": 2, "user": []}, Quarantined(Reason.VALUE_INVALID)),
            ({"env": "prod", "ms": 6, "n": 2, "region": "a|b"}, Used("=a\\|b", 3.0, None)),
        ],
    )
    def test_outcomes(self, data: dict[str, Any], outcome: Any) -> None:
        """An event is used, not matched, or quarantined for this metric with its reason."""
        event = {"type": "t", "weirsource": "web", "data": data}
        assert use(metric(**self.METRIC), event) == outcome

    def test_other_source(self) -> None:
        """An event of another source is not matched."""
        event = {"type": "t", "weirsource": "app", "data": {"env": "prod"}}
        assert use(metric(**self.METRIC), event) == NotMatched()


class TestRefusals:
    @pytest.mark.parametrize(
        ("members", "pointer", "mend"),
        [
            ({"where": "status = 1"}, "/where", "write data.status"),
            ({"by": ["data.a", "lower(data.b)"]}, "/by/1", "give it a name: lower(data.b) as b"),
            ({"by": ["data.a", "data.a"]}, "/by", "name each once"),
            ({"aggregates": ["p50"]}, "", "say what is measured"),
            ({"aggregates": ["median"]}, "/aggregates/0", "the aggregates are count"),
            ({"aggregates": ["stddev"]}, "", "say what is measured"),
            ({"aggregates": ["last"]}, "", "say what is measured"),
            ({"aggregates": ["theta"]}, "/aggregates/0", "theta(subject)"),
            ({"aggregates": ["top"]}, "/aggregates/0", "top(subject)"),
            ({"aggregates": ["top(subject, 0)"]}, "/aggregates/0", "top(subject, 10)"),
            ({"aggregates": ["top(subject, 101)"]}, "/aggregates/0", "top(subject, 10)"),
            ({"aggregates": ["theta(a)"]}, "/aggregates/0", "write data.a"),
            (
                {"aggregates": ["top(subject)", "top(data.a, 3)"]},
                "/aggregates",
                "define a second metric",
            ),
            ({"sketches": {"kll_k": 7}}, "/sketches/kll_k", ""),
            ({"sketches": {"hll_lg_k": 16}}, "/sketches/hll_lg_k", ""),
            ({"sketches": {"k": 7}}, "/sketches/k", "the members are kll_k"),
            ({"aggregates": ["distinct"]}, "/aggregates/0", "distinct(subject)"),
            ({"by": ["data.a", 'data."a"']}, "/by", "data.a stands there twice"),
            ({"value": "data.x", "aggregates": ["p50", "p50.0"]}, "/aggregates", "p50 stands"),
            ({"value": 'data.x + "tax"'}, "/value", "text stands in single quotes: 'tax'"),
            ({"where": 'data.kind = "source"'}, "/where", "single quotes: 'source'; the attr"),
            ({"aggregates": ["p0"]}, "/aggregates/0", "write min"),
            ({"aggregates": ["p100"]}, "/aggregates/0", "write max"),
            ({"aggregates": ["p999"]}, "/aggregates/0", "write p99.9"),
            ({"aggregates": ["p99.55"]}, "/aggregates/0", "write p99.5"),
            ({"aggregates": ["p99.94"]}, "/aggregates/0", "write p99.9"),
            (
                {"aggregates": ["p99.95"]},
                "/aggregates/0",
                "p99.95 takes a kll_k of 17189, and 16000 is the largest that is allowed; "
                "the most extreme are p0.1 and p99.9",
            ),
            ({"aggregates": ["p99.99"]}, "/aggregates/0", "a kll_k beyond the 65535 that"),
            ({"aggregates": ["p0.01"]}, "/aggregates/0", "the most extreme are p0.1 and p99.9"),
            ({"aggregates": ["distinct(a)"]}, "/aggregates/0", "write data.a"),
            ({"aggregates": [f"distinct(data{'.a' * 2_000})"]}, "/aggregates/0", "less deep"),
            ({"aggregates": [f"top(data{'.a' * 2_000}, 5)"]}, "/aggregates/0", "less deep"),
            (
                {"aggregates": ["distinct(subject)", "distinct(data.a)"]},
                "/aggregates",
                "define a second metric",
            ),
            ({"resolution": "5s"}, "/resolution", "choose the finest"),
            ({"resolution": 10}, "/resolution", "10s, 5m, 24h or 90d"),
            ({"keep": {"1m": "1d"}}, "", "write keep: {10s: 24h}"),
            ({"keep": {"10s": "1s"}}, "", "keep a pane at least until it is final"),
            ({"keep": {"10s": "401d"}}, "", "keep a pane"),
            ({"events": {"type": "a*b"}}, "/events/type/0", "com.acme.*"),
            ({"events": {"typ": "a", "type": "b"}}, "/events/typ", 'did you mean "type"?'),
            ({"filter": "x"}, "/filter", "the members are kind, name"),
            ({"agregates": ["count"]}, "/agregates", 'did you mean "aggregates"?'),
            ({"name": "Check out"}, "/name", '"check_out" would do'),
            ({"max_series": 0}, "/max_series", ""),
            ({"tenant": "other"}, "/tenant", ""),
        ],
    )
    def test_place_and_mend(self, members: dict[str, Any], pointer: str, mend: str) -> None:
        """A refusal names the member and what to do."""
        error = error_of(**members)
        assert error["pointer"] == pointer
        assert mend in error["mend"]
        assert error["required"]

    @pytest.mark.parametrize("ending", ["p95", "count", "sum", "avg", "min", "max", "distinct"])
    def test_names_that_prometheus_would_misread(self, ending: str) -> None:
        """A name that looks like another metric's aggregate is refused by its own code."""
        problem = refusal({"kind": "metric", "name": f"a_{ending}", "events": {"type": "t"}})
        assert problem.reason is Reason.NAME_AMBIGUOUS
        assert f"a_{ending} would be read as the {ending} of a" in problem.message

    @pytest.mark.parametrize(
        ("members", "reason"),
        [
            ({"nope": 1}, Reason.UNKNOWN_FIELD),
            ({"where": "reflect('a', 'b')"}, Reason.FUNCTION_NOT_ALLOWED),
            ({"where": "data.a ="}, Reason.EXPRESSION_INVALID),
            ({"value": "data.a" + " + 1" * 2000}, Reason.EXPRESSION_TOO_LARGE),
            ({"resolution": "5s"}, Reason.DEFINITION_INVALID),
        ],
    )
    def test_codes(self, members: dict[str, Any], reason: Reason) -> None:
        """What is wrong decides the code."""
        problem = refusal({"kind": "metric", "name": "m", "events": {"type": "t"}, **members})
        assert problem.reason is reason

    def test_all_errors_at_once(self) -> None:
        """Two faults are told together, up to twenty, as a problem of RFC 9457."""
        bad = {"kind": "metric", "name": "m", "events": {"type": "t"}, "where": "x", "by": ["y"]}
        body = refusal(bad).body()
        assert [error["pointer"] for error in body["errors"]] == ["/where", "/by/0"]
        assert body["code"] == "expression_invalid"
        many = refusal({**bad, **{f"x{n}": 1 for n in range(30)}}).body()
        assert len(many["errors"]) == 20

    def test_message_is_a_whole_sentence(self) -> None:
        """The text alone tells what was required, what came and what to do."""
        problem = refusal("kind: metric\nname: m\nevents: {type: t}\nwhere: status < 5")
        assert problem.message == (
            '/where must be an attribute or a path below data, got "status (character 1)"; '
            "write data.status, or extension.status for an extension attribute"
        )

    def test_what_is_missing_is_told_as_a_sentence_too(self) -> None:
        """Nothing came where something was required."""
        problem = refusal("kind: metric\nname: m")
        assert problem.message == "/events must be given, got nothing; add events"

    @pytest.mark.parametrize(
        ("members", "required"),
        [
            ({"aggregates": []}, "a list with at least 1"),
            ({"unit": "x" * 33}, "at most 32 characters"),
            ({"unit": 3}, "a text"),
            ({"events": 3}, "an object"),
            ({"by": 3}, "a list"),
            ({"max_series": 0}, "greater than or equal to 1"),
            ({"max_series": "many"}, "a valid integer"),
        ],
    )
    def test_what_is_required_follows_must_be(self, members: dict[str, Any], required: str) -> None:
        """Whatever refuses a field, its words go on after "must be"."""
        problem = refusal({"kind": "metric", "name": "m", "events": {"type": "t"}, **members})
        assert problem.errors[0]["required"].startswith(required)

    def test_a_full_board_says_its_limit(self) -> None:
        """The 61st tile is refused in words that stand after "must be"."""
        tiles = [{"type": "note", "text": "x"}] * 61
        problem = refusal({"kind": "board", "name": "b", "tiles": tiles})
        assert problem.message.startswith("/tiles must be at most 60 items, got ")

    def test_address_and_text_must_agree(self) -> None:
        """A text that calls itself otherwise than its address is refused."""
        with pytest.raises(ProblemError, match='must be "other", as in the address'):
            check("metric", "other", CHECKOUT)
        assert check("metric", "m", {"events": {"type": "t"}}).model.name == "m"

    def test_unknown_kind(self) -> None:
        """A kind that is misspelled is guessed."""
        assert refusal("kind: metrc").errors[0]["mend"] == 'did you mean "metric"?'
        assert "the kinds are" in refusal("kind: 7").errors[0]["mend"]


class TestText:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("name: a\nname: b", 'has each name once, got "one twice in line 2, column 1"'),
            ('{"name": "a", "name": "b"}', 'an object that has each name once, got "name twice"'),
            ("a: &x [1]\nb: *x", 'without anchors, got "an anchor in line 1, column 4"'),
            ("a: !!python/object:os.system x", 'without tags, got "a tag in line 1, column 4"'),
            ("a: [1", 'YAML or JSON, got "something else in line 1, column 6"; mend that line'),
            ("- 1", 'an object with names, got "a list"'),
            ("word", 'an object with names, got "a plain value"'),
            ("1: 2", 'an object with names, got "a name that is no text"'),
            ("", 'one definition, got "0 of them"'),
            ("a: 1\n---\nb: 2", 'one definition, got "2 of them"'),
            ("a: " + "[" * 21 + "]" * 21, 'at most 20 levels deep, got "more levels"'),
            ("a: " + "[" * 30_000, "at most 20 levels deep"),
            ('{"a":' * 10_000, "at most 20 levels deep"),
            ("x" * 65_537, 'at most 65536 bytes, got "65537 bytes"; split it'),
            ("a: \x00", 'YAML or JSON, got "something else"; mend it'),
        ],
    )
    def test_refusals(self, text: str, words: str) -> None:
        """A text that is no plain YAML or JSON is refused with its place, in a second."""
        start = time.process_time()
        problem = refusal(text)
        assert problem.message.startswith("definition must be ")
        assert words in problem.message
        (place,) = problem.errors
        assert f'must be {place["required"]}, got "{place["got"]}"; {place["mend"]}' in (
            problem.message
        )
        assert time.process_time() - start < 1.5

    def test_anchors_that_grow_are_not_expanded(self) -> None:
        """The well-known bomb of aliases is refused at its first anchor."""
        bomb = "a: &a [x]\n" + "".join(f"{c}: &{c} [*a, *a]\n" for c in "bcdefgh")
        assert "without anchors" in refusal(bomb).message

    def test_yaml_is_version_1_2(self) -> None:
        """`on`, `no` and 010 are texts and numbers as in JSON, not booleans and octals."""
        assert parse_texts("a: on\nb: no\nc: 010") == [{"a": "on", "b": "no", "c": 10}]

    @given(st.text(max_size=80))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        """No text raises anything but a problem."""
        try:
            check(None, None, text)
        except ProblemError:
            return


class TestBudget:
    def test_estimate(self) -> None:
        """Rows are series times panes kept; without dimensions there is one series."""
        cost = estimate(metric(keep={"10s": "1h", "1m": "1h"}))
        assert (cost.series, cost.rows, cost.rows_a_batch) == (1, 360 + 60, 2)
        cost = estimate(metric(by=["data.a"], max_series=50, keep={"1m": "1h"}, resolution="1m"))
        assert (cost.rows, cost.memory_bytes) == (3_000, 3_000 * 42)


class TestOtherKinds:
    KEY: ClassVar[dict[str, Any]] = {
        "kind": "key",
        "name": "a1b2c3d4",
        "hash": "0" * 64,
        "scopes": ["ingest"],
    }

    def test_key(self) -> None:
        """A key names its scopes and the source of what it sends."""
        assert check(None, None, self.KEY).model.canonical()["source"] == "default"
        assert refusal({**self.KEY, "scopes": ["root"]}).errors[0]["pointer"] == "/scopes/0"
        assert refusal({**self.KEY, "name": "short"}).errors[0]["pointer"] == "/name"

    def test_source_of_a_key(self) -> None:
        """A source is a short name: it is a part of series, headers and accounts."""
        longest = "shop.app_2-" + "x" * 53
        assert check(None, None, {**self.KEY, "source": longest}).model.canonical()["source"]
        for source in (longest + "x", "", "Web", "a|b", "a\x01b", "-a"):
            problem = refusal({**self.KEY, "source": source})
            assert problem.errors[0]["pointer"] == "/source"
            assert "up to 64 of a-z, 0-9" in problem.message

    def test_an_old_key_has_no_end_and_no_limits(self) -> None:
        """A text that was stored before there were any is read as one that says none."""
        old = check(None, None, self.KEY).model.canonical()
        assert (old["expires"], old["events_per_s"], old["bytes_per_s"]) == (None, None, None)

    def test_end_and_limits_of_a_key(self) -> None:
        """An instant with its zone, and whole numbers from 1 on; each refusal has its place."""
        end = {"expires": "2027-01-31T19:00:00+01:00"}
        limits = {"events_per_s": 1, "bytes_per_s": 10**12}
        told = check(None, None, {**self.KEY, **end, **limits}).model.canonical()
        assert told["expires"] == "2027-01-31T18:00:00Z"
        assert (told["events_per_s"], told["bytes_per_s"]) == (1, 10**12)

    @pytest.mark.parametrize(
        ("member", "value", "required"),
        [
            ("expires", "2027-01-31T18:00:00", "an instant with its zone"),
            ("expires", "soon", "an instant with its zone"),
            ("expires", 1_800_000_000_000, "an instant with its zone"),
            ("events_per_s", 0, "greater than or equal to 1"),
            ("bytes_per_s", 0, "greater than or equal to 1"),
            ("bytes_per_s", 10**12 + 1, "less than or equal to 1000000000000"),
            ("events_per_s", 1.5, "a valid integer"),
            ("events_per_s", "5", "a valid integer"),
            ("bytes_per_s", True, "a valid integer"),
        ],
    )
    def test_what_is_no_end_and_no_limit(self, member: str, value: object, required: str) -> None:
        """It is refused with the place, and with what it must be."""
        problem = refusal({**self.KEY, member: value})
        assert problem.errors[0]["pointer"] == f"/{member}"
        assert f"/{member} must be {required}" in problem.message

    def test_a_secret_is_not_said_back(self) -> None:
        """Whoever writes the key in place of its hash does not find it in the answer."""
        problem = refusal({**self.KEY, "hash": "wk_a1b2c3d4_secretsecret"})
        assert "secretsecret" not in json.dumps(problem.body())

    def test_board(self) -> None:
        """A tile is a query and how to draw it; windows may be written by their length."""
        text = """
        kind: board
        name: web
        tiles:
          - {type: chart, metric: requests, aggregate: rate, by: [status], window: 5m,
             where: [[route, in, [/pay, /cart]]]}
          - {type: chart, metric: latency, aggregates: [p50, p95],
             window: {kind: sliding, length: 1m}}
          - {type: note, text: hello}
        """
        board = check(None, None, text).model
        assert isinstance(board, Board)
        assert board.tiles[0].window is not None
        assert board.tiles[0].window.length == 300_000
        assert board.tiles[0].where[0].value == ["/pay", "/cart"]

    @pytest.mark.parametrize(
        ("tile", "pointer"),
        [
            ({"type": "pie"}, "/tiles/0/type"),
            ({"type": "chart", "metric": "m"}, "/tiles/0"),
            ({"type": "chart", "metric": "m", "aggregate": "nope"}, "/tiles/0"),
            ({"type": "chart", "metric": "m", "aggregate": "rate", "by": "x"}, "/tiles/0/by"),
            (
                {"type": "chart", "metric": "m", "aggregate": "rate", "where": [["a", "~", 1]]},
                "/tiles/0/where/0/op",
            ),
            (
                {"type": "chart", "metric": "m", "aggregate": "rate", "where": ["a"]},
                "/tiles/0/where/0",
            ),
        ],
    )
    def test_board_refusals(self, tile: dict[str, Any], pointer: str) -> None:
        """A tile that asks nothing, or what no metric has, is refused at its place."""
        problem = refusal({"kind": "board", "name": "b", "tiles": [tile]})
        assert problem.errors[0]["pointer"] == pointer

    def test_kinds_name_themselves(self) -> None:
        """A kind is listed under the name that its model insists on."""
        for name, model in KINDS.items():
            assert model.model_fields["kind"].default == name


class TestDurations:
    @given(st.integers(0, 10**12))
    def test_reads_back(self, length_ms: int) -> None:
        """A length that was written reads as the same."""
        assert parse_duration_ms(format_duration(length_ms)) == length_ms

    @pytest.mark.parametrize("text", ["", "10", "1.5h", "-1s", "1s ", "1y", "s", "1h m"])
    def test_refusals(self, text: str) -> None:
        """What is no length is refused, and said back."""
        with pytest.raises(ValueError, match="must be written like"):
            parse_duration_ms(text)

    def test_spelling(self) -> None:
        """Several units add up, weeks too."""
        assert parse_duration_ms("1w1d2m30s") == 8 * 86_400_000 + 150_000
        assert format_duration(90_000) == "1m30s"


@pytest.mark.parametrize(
    ("text", "definitions"),
    [
        ("# note\n---\na: 1\n---\n---\nb: 2", ["a: 1\n", "b: 2\n"]),
        ("--- # first\na: 1\n", ["# first\na: 1\n"]),
        ("a: |\n  x\n  ---\n  y\n", ["a: |\n  x\n  ---\n  y\n"]),
        ("a: ----\n---- : 1\n", ["a: ----\n---- : 1\n"]),
        ('{"kind": "metric"}', ['{"kind": "metric"}\n']),
        ("# only\n\n  # comments\n", []),
    ],
)
def test_a_text_is_split_as_it_was_written(text: str, definitions: list[str]) -> None:
    """A definition is what stands between two markers; comments alone are none."""
    assert split_text(text) == definitions


class TestSketchSizes:
    def sized(self, *aggregates: str, **sizes: int) -> Metric:
        """Return a checked metric with sketches of these sizes."""
        given = {"value": "data.x", "aggregates": list(aggregates), "sketches": sizes}
        return metric(**given)

    @pytest.mark.parametrize(
        ("percentiles", "least"), [(["p50"], 15), (["p99", "p50"], 790), (["p99.9"], 8_427)]
    )
    def test_too_small_for_a_percentile(self, percentiles: list[str], least: int) -> None:
        """A size that does not carry what is asked is refused with the one that does."""
        worst = max(percentiles, key=lambda name: float(name[1:]))
        with pytest.raises(ProblemError) as caught:
            self.sized(*percentiles, kll_k=least - 1)
        assert caught.value.errors[0] == {
            "pointer": "/sketches",
            "required": f"a kll_k of at least {least}, which {worst} takes",
            "got": str(least - 1),
            "mend": f"write kll_k: {least}, leave kll_k out, or do not ask for {worst}",
        }
        assert self.sized(*percentiles, kll_k=least).kll_k == least

    def test_the_usual_sizes(self) -> None:
        """Left out, k is what the percentiles take, and no percentile has no sketch."""
        assert [self.sized(name).kll_k for name in ("p99", "p50", "avg")] == [800, 200, 0]
        assert self.sized("p99", kll_k=3000).kll_k == 3000

    def test_members_are_each_path_once(self) -> None:
        """One path under three sketches is read once; the distinct count's comes first."""
        one = metric(aggregates=["top(subject)", "theta(subject)", "distinct(subject)"])
        assert one.members == (Path(("subject",)),)
        three = metric(aggregates=["top(data.a, 3)", "distinct(data.b)", "theta(data.c)"])
        assert [str(path) for path in three.members] == ["data.b", "data.c", "data.a"]

    def test_the_budget_takes_every_sketch(self) -> None:
        """Each sketch makes the estimate larger; what nobody asks for does not."""
        costs = [
            estimate(metric(value="data.x", aggregates=["count", *more])).memory_bytes
            for more in ([], ["stddev"], ["last"], ["top(subject)"], ["theta(subject)"])
        ]
        assert costs == sorted(costs)
        assert len(set(costs)) == len(costs)
