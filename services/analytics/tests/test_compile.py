"""The compiled columns mean what the reference means, on real Spark and hostile events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F
from weir.definitions.metric import Metric
from weir.expressions import NotMatched, Quarantined, Used, use
from weir.expressions.functions import NAMES
from weir.expressions.numbers import number_text
from weir_analytics.panes.compile import (
    EMPTY_MEMBER,
    EventSchema,
    MetricInputs,
    error_of,
    member_of,
    read_metric,
    series_of,
)
from weir_analytics.panes.compile_nodes import FUNCTIONS
from weir_analytics.panes.compile_views import double_text

from .compile_cases import NUMBERS, TEXTS, draw_event, draw_metric

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

EVENTS, METRICS = 400, 6


def views_of(spark: SparkSession, schema: EventSchema, events: Sequence[str]) -> DataFrame:
    """Return the views of some events, each a column."""
    frame = spark.createDataFrame([(event.encode(),) for event in events], "value binary")
    parsed = frame.select(schema.parse(F.col("value")).alias("parsed"))
    views = schema.views(F.col("parsed"))
    return parsed.select(*(view.alias(name) for name, view in views.items()))


def judged_columns(
    metric: Metric, schema: EventSchema, viewed: DataFrame
) -> tuple[MetricInputs, list[Column]]:
    """Return what a metric reads, and series, value, distinct text and error made of it."""
    made = read_metric(metric, schema, {name: F.col(name) for name in viewed.columns})
    error = error_of(made.value, made.absent, made.text, made.marked)
    return made, [series_of(made.text), made.value, member_of(made.marked), error]


def outcomes(
    spark: SparkSession, metrics: Sequence[Metric], events: Sequence[str]
) -> list[list[Any]]:
    """Return what Spark makes of each event for each metric, as `use` would say it."""
    schema = EventSchema.of(metrics)
    viewed = views_of(spark, schema, events)
    columns = []
    for metric in metrics:
        made, judged = judged_columns(metric, schema, viewed)
        matched = made.selected & made.where
        columns.append(F.when(matched, F.struct(*judged)))
    rows = viewed.select(*[c.alias(f"m{at}") for at, c in enumerate(columns)]).collect()
    return [[outcome(row[at]) for at in range(len(metrics))] for row in rows]


def outcome(row: Row | None) -> Any:
    """Return a row of Spark's in the words of the reference."""
    if row is None:
        return NotMatched()
    series, value, member, error = row
    distinct = "" if member == EMPTY_MEMBER else member
    return Quarantined(error) if error is not None else Used(series, value, distinct)


def metric_of(**members: Any) -> Metric:
    """Return a metric on type `t`."""
    return Metric.model_validate({"name": "m", "events": {"type": "t"}, **members})


def event_of(data: str, **attributes: str) -> str:
    """Return the raw JSON of an event of type `t`."""
    extra = "".join(f'"{name}":{json.dumps(value)},' for name, value in attributes.items())
    return (
        f'{{"weirid":"{"0" * 32}","weirms":"+000001700000000","type":"t","source":"s","id":"1",'
        f'"weirtenant":"default","weirsource":"web",{extra}"data":{data}}}'
    )


class TestAgainstTheReference:
    # Each example is one Spark job over hundreds of cases; shrinking would run dozens more,
    # and a seed shrunk is no simpler.
    @settings(
        max_examples=8,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        database=None,
    )
    @given(seed=st.integers(0, 2**32 - 1))
    def test_spark_and_python_agree_on_every_event(self, spark: SparkSession, seed: int) -> None:
        """Where, series, value, distinct and reason of drawn metrics equal the reference."""
        random = Random(seed)  # noqa: S311 - cases, no secrets
        metrics = [draw_metric(random, f"m{at}") for at in range(METRICS)]
        events = [draw_event(random) for _ in range(EVENTS)]

        for event, found in zip(events, outcomes(spark, metrics, events), strict=True):
            decoded = json.loads(event)
            for metric, got in zip(metrics, found, strict=True):
                assert got == use(metric, decoded), (seed, event, metric.canonical())

    def test_every_kind_of_json_value_in_every_place(self, spark: SparkSession) -> None:
        """Each hostile value is tried as value, dimension, distinct input and in conditions."""
        values = [*NUMBERS, *TEXTS, "null", "true", "false", "NaN", "[]", "{}", '{"a":1}']
        events = [event_of(f'{{"x":{value},"n":{{"x":{value}}}}}') for value in values]
        events += [event_of("{}"), event_of("5"), event_of('{"X":1}'), event_of('{"x":1,"x":"a"}')]
        metrics = [
            metric_of(value="data.x", by=["data.x"], aggregates=["sum"]),
            metric_of(value="data.n.x", by=["data.n.x", "data.x"], aggregates=["max"]),
            metric_of(by=["data.x"], aggregates=["distinct(data.x)"]),
            metric_of(by=["data.x"], where="data.x = '7' or data.x = 7 or data.x is null"),
            metric_of(where="data.x != 'eu' and length(data.x) > 1"),
            metric_of(where="data.n.x = true", by=["data.n"]),
            metric_of(value="100 / data.x", aggregates=["avg"]),
            metric_of(value="data.x * 1e308", aggregates=["avg"]),
        ]
        for event, found in zip(events, outcomes(spark, metrics, events), strict=True):
            decoded = json.loads(event)
            assert found == [use(metric, decoded) for metric in metrics], event

    def test_number_text(self, spark: SparkSession) -> None:
        """A double has the same text in both, over all magnitudes."""
        random = Random(7)  # noqa: S311
        drawn = [random.uniform(-1, 1) * 10.0 ** random.uniform(-300, 300) for _ in range(5_000)]
        drawn += [round(random.uniform(-1e7, 1e7), random.randrange(9)) for _ in range(5_000)]
        drawn = [x for x in drawn if not 1e25 <= abs(x) < 1e26]  # see `double_text`
        frame = spark.createDataFrame([(x,) for x in drawn], "x double")
        got = [row.t for row in frame.select(double_text(F.col("x")).alias("t")).collect()]

        assert got == [number_text(x) for x in drawn]

    def test_functions_are_those_of_the_language(self) -> None:
        """Every function that can be said is compiled, and no other."""
        assert {*FUNCTIONS, "substr"} == set(NAMES)


class TestSafety:
    ALLOWED = frozenset(
        (
            # leaves, names and structs
            *("Literal", "AttributeReference", "Alias", "GetStructField", "CreateNamedStruct"),
            # JSON and variants
            *("JsonToStructs", "StructsToJson", "SchemaOfVariant", "VariantGet"),
            "IsVariantNull",
            # the one lambda, of numbers as text
            *("ArrayTransform", "LambdaFunction", "NamedLambdaVariable", "CreateArray"),
            *("UnresolvedNamedLambdaVariable",),
            # conditions
            *("And", "Or", "Not", "CaseWhen", "Coalesce", "IsNull", "IsNotNull", "In", "NaNvl"),
            *("EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan"),
            "GreaterThanOrEqual",
            # arithmetic, in its forms that give null
            *("TryAdd", "TrySubtract", "TryMultiply", "TryDivide"),
            *("TryMod", "TryEval", "Add", "Subtract", "Multiply", "Divide", "Remainder"),
            *("Cast", "Abs", "Floor", "Ceil", "Rint"),
            # text
            *("Concat", "Substring", "Length", "OctetLength", "StringTranslate", "Md5"),
            *("StringReplace", "StringSplit", "Get", "FormatString", "RegExpReplace"),
            *("StartsWith", "EndsWith", "Contains", "Lower"),
        )
    )

    def test_plan_has_only_listed_expressions(self, spark: SparkSession) -> None:
        """Of drawn metrics the analyzed plan holds listed expressions only, and no raising cast."""
        random = Random(11)  # noqa: S311
        metrics = [draw_metric(random, f"m{at}") for at in range(12)]
        schema = EventSchema.of(metrics)
        viewed = views_of(spark, schema, ["{}"])
        columns = []
        for metric in metrics:
            made, (series, value, _distinct, error) = judged_columns(metric, schema, viewed)
            columns += [made.where, value, series, error]
        plan = viewed.select(*columns)._jdf.queryExecution().analyzed().toJSON()
        nodes = [n for n in _nodes(json.loads(plan)) if ".expressions." in n.get("class", "")]
        classes = {node["class"].rpartition(".")[2] for node in nodes}

        assert classes <= self.ALLOWED
        assert {"GetStructField", "VariantGet", "TryDivide"} <= classes

    def test_text_of_a_user_is_only_ever_a_literal(self, spark: SparkSession) -> None:
        """Quotes, backticks and SQL in names and literals stay what they are."""
        evil = "x'); reflect('java.lang.System','exit') --"
        quoted = evil.replace("'", "''")
        metric = metric_of(where=f"data.\"a`b; drop\" = '{quoted}'", by=['data."a`b; drop"'])
        events = [event_of(json.dumps({"a`b; drop": evil})), event_of('{"a`b; drop": "x"}')]

        assert outcomes(spark, [metric], events) == [[Used("=" + evil, None, None)], [NotMatched()]]

    def test_repeated_wildcards_match_in_linear_time(self, spark: SparkSession) -> None:
        """A pattern with several `%` on a megabyte of near misses ends at once."""
        metric = metric_of(where="data.x like '%a%a%a%a%b'")
        events = [event_of(json.dumps({"x": "a" * 900_000}))]

        assert outcomes(spark, [metric], events) == [[NotMatched()]]

    @pytest.mark.parametrize(
        ("pattern", "text", "matches"),
        [
            (r"%\\E%", r"a\Eb", True),
            (r"%\\E%", "aEb", False),
            (r"%\\E.*\\Q%", "ab", False),
            (r"%\\E.*\\Q%", r"\E.*\Q", True),
            (r"%\\Qa\\E%", r"x\Qa\E", True),
            (r"%\\%E%", r"\E", True),
            (r"%\\E(%", r"\E(", True),
        ],
    )
    def test_a_pattern_is_never_a_regex(
        self, spark: SparkSession, pattern: str, text: str, matches: bool
    ) -> None:
        """What would end a quotation in a regex is a text like any other, and throws nothing."""
        metric = metric_of(where=f"data.x like '{pattern}'")
        events = [event_of(json.dumps({"x": text}))]

        (found,) = outcomes(spark, [metric], events)
        assert found == [Used("", None, None) if matches else NotMatched()]

    def test_deep_arithmetic_does_not_grow_the_plan(self, spark: SparkSession) -> None:
        """An expression of the deepest allowed nesting is compiled and counted."""
        text = "data.x"
        for _ in range(18):
            text = f"({text} * 1.5)"
        metric = metric_of(value=text, aggregates=["sum"])
        (found,) = outcomes(spark, [metric], [event_of('{"x": 2}')])

        assert found == [use(metric, json.loads(event_of('{"x": 2}')))]


def _nodes(parts: Any) -> list[dict[str, Any]]:
    if isinstance(parts, dict):
        return [parts, *(n for part in parts.values() for n in _nodes(part))]
    return [n for part in parts for n in _nodes(part)] if isinstance(parts, list) else []
