/** All rules: where each stands, when it fires, whom it tells. */
import { useMemo } from "preact/hooks";
import type { Alert, Rule } from "../../api/shapes";
import { HealthTag, StateTag } from "../../components/state-tag";
import { VirtualTable } from "../../components/virtual-table";
import { MOST } from "../../lib/alerts";
import { limitSentence } from "../../lib/limit-words";
import { current } from "../../lib/router";
import { isSignal } from "../../lib/signals";
import { isSick, sickOf } from "../../lib/standing";
import { clockOn, lengthWords } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { listNowMs } from "./choice";
import { type Day, dayOf, knownFrom } from "./day";
import { DayStrip } from "./day-strip";
import { NoRules } from "./no-rules";
import { NotFound, Seek, wantedNow } from "./seek";
import { orderOf, RULE_ORDERS, rulesSought } from "./sought";

const said = alertWords.rules;
const ORDER = ["firing", "recovering", "pending", "ok", "stopped"];

interface RulesTabProps {
  readonly rules: readonly Rule[];
  readonly open: readonly Alert[];
  readonly ended: readonly Alert[];
}

/** The rules on metrics, and apart from them those on Weir itself; worst first. */
export function RulesTab({ rules, open, ended }: RulesTabProps) {
  const order = orderOf(current.value.params, RULE_ORDERS);
  const rows = rulesSought(rules, wantedNow(), order, rank);
  const own = rows.filter((rule) => isSignal(rule.metric));
  const theirs = rows.filter((rule) => !isSignal(rule.metric));
  const none = rules.every((rule) => isSignal(rule.metric));
  const dayFor = useDays(open, ended);
  const { signals, seek } = alertWords;
  return (
    <div class="stack">
      {rules.length > 0 && <Seek label={seek.rules} orders={RULE_ORDERS} order={order} />}
      {none && <NoRules />}
      {rows.length === 0 && rules.length > 0 && <NotFound />}
      {theirs.length > 0 && <Table label={said.label} rows={theirs} dayFor={dayFor} />}
      {own.length > 0 && (
        <Table label={signals.title} sub={signals.why} rows={own} dayFor={dayFor} />
      )}
    </div>
  );
}

type DayFor = (rule: Rule) => Day;

/** Returns how the last day of a rule is found; it is drawn anew with each reading. */
function useDays(open: readonly Alert[], ended: readonly Alert[]): DayFor {
  return useMemo(() => {
    const byRule = new Map<string, Alert[]>();
    for (const alert of [...open, ...ended]) {
      byRule.set(alert.rule, [...(byRule.get(alert.rule) ?? []), alert]);
    }
    const [knownMs, nowMs] = [knownFrom(ended, MOST), listNowMs.peek()];
    return (rule) => dayOf(byRule.get(rule.name) ?? [], knownMs, nowMs);
  }, [open, ended]);
}

/** What is not evaluated is as bad as what fires: nobody would be told. */
const rank = (rule: Rule) => (sickOf([rule]).length > 0 ? -1 : ORDER.indexOf(rule.state));

interface TableProps {
  readonly label: string;
  readonly sub?: string;
  readonly rows: readonly Rule[];
  readonly dayFor: DayFor;
}

function Table({ label, sub, rows, dayFor }: TableProps) {
  const { head } = said;
  return (
    <div class="panel rules-table row-cards">
      {sub && (
        <header>
          <h2>{label}</h2>
          <span class="sub">{sub}</span>
        </header>
      )}
      <VirtualTable
        label={label}
        tall
        rows={rows}
        head={
          <tr>
            <th>{head.state}</th>
            <th>{head.rule}</th>
            <th>{head.limit}</th>
            <th>{head.over}</th>
            <th>{head.by}</th>
            <th>{head.severity}</th>
            <th>{head.channels}</th>
            <th>{head.lastFired}</th>
            <th>{head.day}</th>
          </tr>
        }
        row={(rule) => <RuleRow key={rule.name} rule={rule} day={dayFor(rule)} />}
      />
    </div>
  );
}

function RuleRow({ rule, day }: { rule: Rule; day: Day }) {
  const { last_fired_ms: last } = rule;
  return (
    <tr data-testid="rule-row" data-rule={rule.name}>
      <td>
        <State rule={rule} />
      </td>
      <td>
        <a class="mono b" href={to(`/rules/${encodeURIComponent(rule.name)}`)}>
          {rule.name}
        </a>
        {said.modes[rule.mode] && <span class="t3 s"> {said.modes[rule.mode]}</span>}
      </td>
      <td>
        {!isSignal(rule.metric) && (
          <a class="plain mono" href={to(`/m/${encodeURIComponent(rule.metric)}`)}>
            {rule.metric}
          </a>
        )}{" "}
        {limitSentence(rule)}
        {isSick(rule.health) && rule.why && <span class="t2 s why">{rule.why}</span>}
      </td>
      <td class="t2 hide-s">
        {isSignal(rule.metric) ? said.now : said.windows(lengthWords(rule.window_ms))}
      </td>
      <td class="t2 hide-s">{rule.by.join(", ") || said.total}</td>
      <td class="t2 hide-s">{rule.severity}</td>
      <td class="t2 hide-s">{rule.channels.join(", ") || nobody(rule)}</td>
      <td class="t2 hide-s">
        {last === null ? said.never : clockOn(last, listNowMs.value, zone.value)}
      </td>
      <td>
        <DayStrip day={day} />
      </td>
    </tr>
  );
}

/** A rule on Weir that names no channel tells all of them. */
const nobody = (rule: Rule) => (isSignal(rule.metric) ? said.everybody : said.nobody);

function State({ rule }: { rule: Rule }) {
  const silent = rule.groups.filter((group) => group.health === "no_data").length;
  return (
    <span class="row">
      <StateTag state={rule.state} />
      {rule.firing > 1 && <span class="t2 s">{said.firing(rule.firing)}</span>}
      <HealthTag
        health={rule.health}
        why={rule.health === "no_data" ? said.noData(silent) : (rule.why ?? null)}
      />
    </span>
  );
}
