/** Where a stored rule stands: its series with their values now, what silences it, its alerts. */
import { useLoad } from "../../api/load";
import type { Alert, Page, Rule, RuleGroup, Silence } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { Empty } from "../../components/notes";
import { HealthTag, StateTag } from "../../components/state-tag";
import { VirtualTable } from "../../components/virtual-table";
import { endedAlerts, openAlerts, useReader } from "../../lib/alerts";
import { endsText } from "../../lib/ends";
import { crossing, seriesText } from "../../lib/limit-words";
import { amountOf, isSignal } from "../../lib/signals";
import { healthOf, silenceOf } from "../../lib/standing";
import { clockOn, span } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { ruleWords } from "../../messages.rules.en";
import { signalWords } from "../../messages.signals.en";
import { listNowMs } from "../alerts/choice";
import { lengthMs } from "../alerts/now";
import { whatOf } from "../alerts/silence";

const said = ruleWords.standing;
const EVERY_MS = 10_000;

/** Two panels: what is now, and what was. */
export default function Standing({ rule }: { rule: Rule }) {
  return (
    <div class="grid rule-stands">
      <section class="panel c4" data-testid="rule-now">
        <header>
          <h2>{said.now}</h2>
        </header>
        <div class="body stack">
          {isSignal(rule.metric) && (
            <p class="t2">
              {signalWords.what}: {signalWords.explained[rule.metric] ?? rule.metric}.
            </p>
          )}
          <Groups rule={rule} />
          <Silences name={rule.name} />
        </div>
      </section>
      <Past rule={rule} />
    </div>
  );
}

function Groups({ rule }: { rule: Rule }) {
  if (rule.mode === "stopped") return <p class="t2">{said.stopped}</p>;
  if (rule.groups.length === 0) return <p class="t2">{said.noGroups}</p>;
  return (
    <ul class="stand" aria-label={said.groups}>
      {rule.groups.map((group) => (
        <GroupRow key={JSON.stringify(group.by)} rule={rule} group={group} />
      ))}
    </ul>
  );
}

function GroupRow({ rule, group }: { rule: Rule; group: RuleGroup }) {
  const ends = endsText(group, rule.unit);
  const silence = silenceOf(group, listNowMs.value);
  return (
    <li data-testid="rule-group" data-state={group.state}>
      <span class="grow">{seriesText(group.by, rule.by) || ruleWords.test.all}</span>
      <span title={said.lastTold}>
        <b>{amountOf(group.value, rule)}</b>{" "}
        {ends && <span class="t3">{alertWords.detail.within(ends)}</span>}
      </span>
      <StateTag state={group.state} />
      <HealthTag health={healthOf(rule, group)} why={rule.why} />
      {silence !== null && <span class="t2 s">{alertWords.now.silentFor(span(silence))}</span>}
    </li>
  );
}

/** Which silences name the rule; those that name labels alone are on their own page. */
function Silences({ name }: { name: string }) {
  const { body } = useLoad<Page<Silence>>("/silences", EVERY_MS);
  const active = (body?.items ?? []).filter((one) => one.active && one.rule === name);
  if (active.length === 0) return null;
  return (
    <ul class="stand" aria-label={said.silences}>
      {active.map((one) => (
        <li key={one.name} data-testid="rule-silence">
          <span class="t3">
            <Icon name="pause" />
          </span>
          <a class="grow" href={toTab("silences")}>
            {whatOf(one)}
          </a>
          <span class="t2 s">{said.until(clockOn(one.until_ms, listNowMs.value, zone.value))}</span>
        </li>
      ))}
    </ul>
  );
}

function toTab(tab: string): string {
  const address = to("/alerts");
  return `${address}${address.includes("?") ? "&" : "?"}tab=${tab}`;
}

function Past({ rule }: { rule: Rule }) {
  const open = useReader(openAlerts).items ?? [];
  const ended = useReader(endedAlerts).items ?? [];
  const own = [...open, ...ended].filter((alert) => alert.rule === rule.name);
  return (
    <section class="panel c8">
      <header>
        <h2>{said.alerts}</h2>
        <span class="sub">{said.alertsSub}</span>
      </header>
      {own.length === 0 ? (
        <Empty icon="ok" title={said.never}>
          <span class="s">{said.neverHint}</span>
        </Empty>
      ) : (
        <VirtualTable
          label={said.alerts}
          rows={own}
          head={
            <tr>
              <th>{said.head.state}</th>
              <th>{said.head.what}</th>
              <th>{said.head.began}</th>
              <th class="num">{said.head.lasted}</th>
            </tr>
          }
          row={(alert) => <AlertRow key={alert.id} alert={alert} rule={rule} />}
        />
      )}
    </section>
  );
}

function AlertRow({ alert, rule }: { alert: Alert; rule: Rule }) {
  const series = seriesText(alert.labels, rule.by);
  const lasted = lengthMs(alert, listNowMs.value);
  return (
    <tr data-testid="rule-alert" data-state={alert.state}>
      <td>
        <StateTag state={alert.state} />
      </td>
      <td>
        <a href={to(`/alerts/${encodeURIComponent(alert.id)}`)}>
          {[series, crossing(alert, rule.metric)].filter(Boolean).join(", ")}
        </a>
      </td>
      <td class="t2">{clockOn(alert.since_ms, listNowMs.value, zone.value)}</td>
      <td class="num t2">{lasted > 0 ? span(lasted) : ""}</td>
    </tr>
  );
}
