"""Alerts and rules as pages list them, and backtests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from weir.alerts import listing
from weir.alerts.backtest import MAX_GROUPS, Backtest
from weir.alerts.machine import Phase
from weir.alerts.sweep import MAX_LIMITS
from weir.alerts.watch import check_rule
from weir.definitions.check import check
from weir.definitions.history import Definition
from weir.definitions.rule import Rule as RuleModel
from weir.problems import ProblemError, Reason
from weir.query.grouping import Group
from weir_reading.served import Metrics
from weir_reading.threads import in_thread

from weir_dashboard.api import alert_models as told
from weir_dashboard.api.alert_answers import Answers, by_of, limit_of, measured, rule_of, unit_of
from weir_dashboard.api.models import Page, Sent
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.freshness import Fresh
from weir_dashboard.rule_health import Evaluation, judge, read_evaluation
from weir_dashboard.turns import while_there

MAX_DAYS = 31
DAY_MS = 86_400_000
_GROUPS = "Whether `groups` are told; with 0 each rule's list is empty, and the rest the same."
_SWEEP = (
    "At how many limits around its own it is tried as well; those that make no sense are left out."
)
_WORST = (Phase.FIRING, Phase.RECOVERING, Phase.PENDING, Phase.OK)
router = APIRouter(tags=["alerts"])


@router.get("/alerts")
async def list_alerts(
    here: Here,
    caller: Who,
    state: Literal["open", "ended"] | None = None,
    rule: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[told.Alert]:
    """List alerts: what fires first, then what ended, each newest first."""
    found = [
        one
        for one in here.alerts.listing.alerts(caller.tenant)
        if (state is None or one.is_open == (state == "open")) and rule in (None, one.rule)
    ]
    answers = Answers(here, caller.tenant)
    return Page(items=[answers.alert(one) for one in found[:limit]])


@router.get("/alerts/{id}")
async def get_alert(id: str, here: Here, caller: Who) -> told.AlertDetail:  # noqa: A002  the path's
    """Return an alert with all that happened to it."""
    found = here.alerts.listing.alert(caller.tenant, id)
    if found is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such alert")
    return Answers(here, caller.tenant).detail(found)


@router.get("/rules")
async def list_rules(
    here: Here,
    caller: Who,
    groups: Annotated[bool, Query(description=_GROUPS)] = True,
) -> Page[told.Rule]:
    """List the tenant's rules by name, each with where its series stand."""
    found = here.catalog.folded.current(caller.tenant, "rule")
    rules = ((one, rule_of(one)) for one in found)
    seen = _seen(here, caller)
    tell = _whole if groups else _rule
    return Page(items=[tell(here, one, rule, seen) for one, rule in rules if rule is not None])


@router.get("/rules/{name}")
async def get_rule(name: str, here: Here, caller: Who) -> told.Rule:
    """Return a rule with where its series stand."""
    version = here.catalog.folded.get(caller.tenant, "rule", name)
    model = rule_of(version)
    if version is None or model is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such rule")
    return _whole(here, version, model, _seen(here, caller))


class BacktestAsked(Sent):
    """A rule, and over which time."""

    rule: Annotated[str, Field(max_length=65_536, description="Its text, YAML or JSON.")]
    from_ms: int
    to_ms: int
    sweep: Annotated[int, Field(ge=0, le=MAX_LIMITS, description=_SWEEP)] = 0


@router.post("/backtest")
async def backtest(request: Request, body: BacktestAsked, here: Here, caller: Who) -> told.Backtest:
    """Tell when a rule would have fired, by the machine that runs live, over stored panes."""
    rule = check("rule", None, body.rule).model
    if not isinstance(rule, RuleModel):
        msg = "a backtest must be of a rule"
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)
    if not 0 < body.to_ms - body.from_ms <= MAX_DAYS * DAY_MS:
        msg = f"a backtest must span at most {MAX_DAYS} days, from before to"
        raise ProblemError(422, Reason.QUERY_TOO_LARGE, msg)
    if rule.signal is not None:
        msg = f"a backtest must be of a rule on a metric; of {rule.metric} nothing is stored"
        raise ProblemError(422, Reason.QUERY_INVALID, msg)
    metrics = Metrics(here.catalog, caller.tenant)
    check_rule(rule, metrics, here.clock.now_ms())
    work = _tested(here, rule, metrics, body)
    turn = here.turns.take(caller.session or caller.key_id, work)
    found: told.Backtest = await while_there(request, turn)
    return found


async def _tested(
    here: Context, rule: RuleModel, metrics: Metrics, body: BacktestAsked
) -> told.Backtest:
    facts = here.queries.facts()
    test = Backtest(rule, body.from_ms, body.to_ms, sweep=body.sweep)
    while not test.done:
        wanted = await in_thread(here.turns.pool, test.ask, metrics, facts)
        panes = await here.queries.rows(wanted, facts, here.turns.pool)
        await in_thread(here.turns.pool, test.run, panes)
    outcome = test.outcome()
    return told.Backtest(
        fired=outcome.fired,
        firing_ms=outcome.firing_ms,
        longest_ms=outcome.longest_ms,
        coverage=outcome.coverage,
        matched_series=outcome.matched,
        from_ms=body.from_ms,
        to_ms=body.to_ms,
        groups=[
            told.BacktestGroup(
                by=by_of(rule, group),
                spans=[told.BacktestSpan(**span._asdict()) for span in spans],
            )
            for group, spans in outcome.groups
        ],
        sweep=[
            told.BacktestLimit(limit=limit_of(one.rule), fired=one.fired, firing_ms=one.firing_ms)
            for one in outcome.sweep
        ],
        capped=outcome.matched > MAX_GROUPS,
        not_simulated=["late events", "delivery"],
    )


@dataclass(frozen=True)
class _Seen:
    """What all rules of an answer are told with.

    Attributes:
        fired: Since when the newest alert of each rule fires or fired, ms; by rule.
        evaluation: What the alerts job says.
        fresh: How old the numbers are.
        now_ms: The present.
    """

    fired: Mapping[str, int]
    evaluation: Evaluation
    fresh: Fresh
    now_ms: int


def _seen(here: Context, caller: Caller) -> _Seen:
    fired: dict[str, int] = {}
    for one in here.alerts.listing.alerts(caller.tenant):
        fired[one.rule] = max(one.since_ms, fired.get(one.rule, one.since_ms))
    now_ms = here.clock.now_ms()
    evaluation = read_evaluation(here.parts.named("alerts"), now_ms)
    return _Seen(fired, evaluation, here.observer.fresh(), now_ms)


def _rule(here: Context, version: Definition, model: RuleModel, seen: _Seen) -> told.Rule:
    """Return a rule without its groups: their states and how many fire are told all the same."""
    known = here.alerts.listing.groups.get((version.tenant, version.vid), {})
    phases = {group.phase for group in known.values()}
    worst = next((phase for phase in _WORST if phase in phases), Phase.OK)
    silent = any(group.silent_ms is not None for group in known.values())
    health, why = judge(model, version.vid, seen.evaluation, seen.fresh, seen.now_ms, silent=silent)
    return told.Rule(
        name=version.name,
        version=version.version,
        metric=model.metric,
        aggregate=model.aggregate,
        unit=unit_of(here, version.tenant, model),
        by=list(model.by),
        where=[[one.dimension, one.op, one.value] for one in model.where],
        window_ms=model.window.length,
        side=model.side,  # type: ignore[arg-type]  # one of the three
        limit=limit_of(model),
        severity=model.severity,
        mode=model.mode,
        channels=list(model.route.channels),
        state="stopped" if model.mode == "stopped" else worst.value,
        health=health,
        why=why,
        firing=sum(group.phase in (Phase.FIRING, Phase.RECOVERING) for group in known.values()),
        last_fired_ms=seen.fired.get(version.name),
        groups=[],
    )


def _whole(here: Context, version: Definition, model: RuleModel, seen: _Seen) -> told.Rule:
    known = dict(here.alerts.listing.groups.get((version.tenant, version.vid), {}))
    readings = seen.evaluation.points(version.vid) if model.signal is not None else {}
    for group in readings:
        # Of a signal every group is known, also one of which nothing had to be told.
        known.setdefault(group or (), listing.Group(Phase.OK, None, None, None))
    if readings:
        known = {group: replace(one, point=readings.get(group)) for group, one in known.items()}
    groups = [_group(model, group, one) for group, one in _listed(known.items())]
    return _rule(here, version, model, seen).model_copy(update={"groups": groups})


def _listed(
    known: Iterable[tuple[tuple[str | None, ...], listing.Group]],
) -> list[tuple[tuple[str | None, ...], listing.Group]]:
    """Return the series that are not ok first, then by name."""
    return sorted(known, key=lambda one: (_WORST.index(one[1].phase), str(one[0])))[:MAX_GROUPS]


def _group(rule: RuleModel, group: Group, one: listing.Group) -> told.RuleGroup:
    return told.RuleGroup(
        by=by_of(rule, group),
        state=one.phase.value,
        health="ok" if one.silent_ms is None else "no_data",
        since_ms=one.since_ms,
        silent_ms=one.silent_ms,
        **measured(one.point),
    )
