"""The message of a rule, as its channels would get it if it fired on what it sees now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from weir.alerts import words
from weir.alerts.machine import Point
from weir.alerts.present import Present, worst_of
from weir.alerts.step import Kind, Transition
from weir.alerts.watch import check_rule
from weir.definitions.check import check
from weir.definitions.rule import Rule
from weir.problems import ProblemError, Reason
from weir.query.grouping import Group
from weir.query.states import FINAL
from weir_reading.served import Metrics
from weir_reading.threads import in_thread

from weir_dashboard.api.alert_answers import by_of, measured
from weir_dashboard.api.models import Sent, Told
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.rule_health import read_evaluation
from weir_dashboard.turns import while_there

router = APIRouter(tags=["alerts"])


class RuleSent(Sent):
    """A rule that is being written."""

    rule: Annotated[str, Field(max_length=65_536, description="Its text, YAML or JSON.")]


class RulePreview(Told):
    """A message: its title and text, and of which group and value it speaks.

    `value` lies between `low` and `high`, all null where there is none now; `beyond` tells
    whether the rule would be beyond its limit with it.
    """

    title: str
    text: str
    by: dict[str, str | None]
    value: float | None
    low: float | None
    high: float | None
    beyond: bool


@router.post("/rules/preview")
async def preview_rule(request: Request, body: RuleSent, here: Here, caller: Who) -> RulePreview:
    """Return the message that a rule would send if it fired now, on its worst group."""
    rule = check("rule", None, body.rule).model
    if not isinstance(rule, Rule):
        msg = "only a rule has messages that can be shown beforehand"
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)
    metrics = Metrics(here.catalog, caller.tenant)
    check_rule(rule, metrics, here.clock.now_ms())
    if rule.signal is not None:
        worst = worst_of(rule, _read(here, caller, rule))
    else:
        work = _seen(here, rule, metrics)
        turn = here.turns.take(caller.session or caller.key_id, work)
        worst = await while_there(request, turn)
    return _message(rule, worst, metrics.unit(rule.metric, rule.aggregate))


async def _seen(here: Context, rule: Rule, metrics: Metrics) -> tuple[Group, Point] | None:
    facts = here.queries.facts()
    present = Present(rule, facts.processed_through_ms or 0)
    wanted = await in_thread(here.turns.pool, present.ask, metrics, facts)
    panes = await here.queries.rows(wanted, facts, here.turns.pool)
    await in_thread(here.turns.pool, present.run, panes)
    return present.worst()


def _read(here: Context, caller: Caller, rule: Rule) -> dict[Group, Point]:
    """Return the newest readings of a rule on Weir itself; none if it is not stored."""
    version = here.catalog.folded.get(caller.tenant, "rule", rule.name)
    evaluation = read_evaluation(here.parts.named("alerts"), here.clock.now_ms())
    return evaluation.points(version.vid) if version is not None else {}


def _message(rule: Rule, worst: tuple[Group, Point] | None, unit: str) -> RulePreview:
    group, point = worst or ((None,) * len(rule.by), Point(0, FINAL, None))
    subject = words.Subject(rule, by_of(rule, group), unit)
    told = Transition(Kind.FIRING, point.end_ms, point.end_ms, point.end_ms, point=point)
    low, high = rule.limits
    value = point.value
    return RulePreview(
        title=words.title(subject, told),
        text=words.text(subject, told),
        by=by_of(rule, group),
        **measured(point),
        beyond=value is not None and not low <= value <= high,
    )
