"""The query engine: panes in, windows with bounds and state out.

The same for charts, alerts, backtests and the Prometheus API. Pure: `plan` says which
panes a query needs, somebody fetches them, `answer` merges them; an `Evaluator` does so
again and again as panes change.
"""

from weir.query.answer import Answer
from weir.query.evaluate import Evaluator, answer
from weir.query.facts import Facts, MetricShape, PaneKey, PaneRows, Served, Span, Version
from weir.query.model import Query, canonical, canonical_key, parse_query
from weir.query.plan import plan
from weir.query.reading import Note, Plan

__all__ = [
    "Answer",
    "Evaluator",
    "Facts",
    "MetricShape",
    "Note",
    "PaneKey",
    "PaneRows",
    "Plan",
    "Query",
    "Served",
    "Span",
    "Version",
    "answer",
    "canonical",
    "canonical_key",
    "parse_query",
    "plan",
]
