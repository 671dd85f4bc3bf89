/** All rules: where each stands, when it fires, whom it tells. */
import type { Rule } from "../../api/shapes";
import { VirtualTable } from "../../components/virtual-table";
import { limitSentence } from "../../lib/limit-words";
import { clockOn, lengthWords } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { listNowMs } from "./choice";
import { StateTag } from "./state-tag";

const said = alertWords.rules;
const ORDER = ["firing", "recovering", "pending", "ok", "stopped"];

/** The table of rules, worst first. */
export function RulesTab({ rules }: { rules: readonly Rule[] }) {
  const rows = [...rules].sort(
    (a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.name.localeCompare(b.name),
  );
  const { head } = said;
  return (
    <div class="panel rules-table">
      <VirtualTable
        label={said.label}
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
        <a class="plain mono" href={to(`/m/${encodeURIComponent(rule.metric)}`)}>
          {rule.metric}
        </a>{" "}
        {limitSentence(rule)}
      </td>
      <td class="t2">{said.windows(lengthWords(rule.window_ms))}</td>
      <td class="t2">{rule.by.join(", ") || said.total}</td>
      <td class="t2">{rule.severity}</td>
      <td class="t2">{rule.channels.join(", ") || said.nobody}</td>
      <td class="t2">{last === null ? said.never : clockOn(last, listNowMs.value, zone.value)}</td>
    </tr>
  );
}

function State({ rule }: { rule: Rule }) {
  const silent = rule.groups.filter((group) => group.health === "no_data").length;
  return (
    <span class="row">
      <StateTag state={rule.state} />
      {rule.firing > 1 && <span class="t2 s">{said.firing(rule.firing)}</span>}
      {rule.health === "no_data" && (
        <span title={said.noData(silent)}>
          <StateTag state="no_data" />
        </span>
      )}
    </span>
  );
}
