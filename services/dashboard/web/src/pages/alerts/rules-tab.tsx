/** All rules: where each stands, when it fires, whom it tells. */
import type { Rule } from "../../api/shapes";
import { HealthTag, StateTag } from "../../components/state-tag";
import { VirtualTable } from "../../components/virtual-table";
import { limitSentence } from "../../lib/limit-words";
import { isSignal } from "../../lib/signals";
import { isSick, sickOf } from "../../lib/standing";
import { clockOn, lengthWords } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { listNowMs } from "./choice";
import { NoRules } from "./no-rules";

const said = alertWords.rules;
const ORDER = ["firing", "recovering", "pending", "ok", "stopped"];

/** The rules on metrics, and apart from them those on Weir itself; worst first. */
export function RulesTab({ rules }: { rules: readonly Rule[] }) {
  const rows = [...rules].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  const own = rows.filter((rule) => isSignal(rule.metric));
  const theirs = rows.filter((rule) => !isSignal(rule.metric));
  return (
    <div class="stack">
      {theirs.length > 0 ? <Table label={said.label} rows={theirs} /> : <NoRules />}
      {own.length > 0 && (
        <Table label={alertWords.signals.title} sub={alertWords.signals.why} rows={own} />
      )}
    </div>
  );
}

/** What is not evaluated is as bad as what fires: nobody would be told. */
const rank = (rule: Rule) => (sickOf([rule]).length > 0 ? -1 : ORDER.indexOf(rule.state));

function Table({ label, sub, rows }: { label: string; sub?: string; rows: readonly Rule[] }) {
  const { head } = said;
  return (
    <div class="panel rules-table">
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
          </tr>
        }
        row={(rule) => <RuleRow key={rule.name} rule={rule} />}
      />
    </div>
  );
}

function RuleRow({ rule }: { rule: Rule }) {
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
      <td class="t2">
        {isSignal(rule.metric) ? said.now : said.windows(lengthWords(rule.window_ms))}
      </td>
      <td class="t2">{rule.by.join(", ") || said.total}</td>
      <td class="t2">{rule.severity}</td>
      <td class="t2">{rule.channels.join(", ") || nobody(rule)}</td>
      <td class="t2">{last === null ? said.never : clockOn(last, listNowMs.value, zone.value)}</td>
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
