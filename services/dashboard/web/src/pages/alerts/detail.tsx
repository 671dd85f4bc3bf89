/** The chosen alert: what it says, its chart, what happened, what it rests on. */
import { useLoad } from "../../api/load";
import type { Alert, AlertDetail, Rule } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { Empty, Refused } from "../../components/notes";
import { HealthTag, StateTag, Verdict } from "../../components/state-tag";
import { endsText } from "../../lib/ends";
import { crossing, labelPairs, limitText } from "../../lib/limit-words";
import { exact, integer } from "../../lib/numbers";
import { titleOf } from "../../lib/rule-title";
import { amountOf, isSignal } from "../../lib/signals";
import { isSick, silenceOf } from "../../lib/standing";
import { clockOn, lengthWords, span } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { signalWords } from "../../messages.signals.en";
import { Acts, Held } from "./acts";
import { AroundChart } from "./around-chart";
import { listNowMs } from "./choice";
import { HappenedPanel } from "./happened";
import { groupOf, healthNow, lengthMs } from "./now";

const EVERY_MS = 2_000;
const said = alertWords.detail;

interface DetailProps {
  readonly id: string;
  readonly rules: readonly Rule[];
  close(): void;
}

/** Reads an alert and shows it. */
export function Detail({ id, rules, close }: DetailProps) {
  const { body, problem, reload } = useLoad<AlertDetail>(
    `/alerts/${encodeURIComponent(id)}`,
    EVERY_MS,
  );
  const alert = body?.id === id ? body : null;
  if (problem?.status === 404) {
    return (
      <section class="panel" aria-label={said.label}>
        <Empty icon="search" title={said.gone}>
          <span class="s">{said.goneHint}</span>
          <button type="button" class="btn" onClick={close}>
            {said.back}
          </button>
        </Empty>
      </section>
    );
  }
  if (!alert) {
    return (
      <section class="panel detail-room" aria-label={said.label}>
        {problem && <Refused problem={problem} retry={reload} />}
      </section>
    );
  }
  const rule = rules.find((one) => one.name === alert.rule) ?? null;
  return (
    <section class="stack" aria-label={said.label} data-testid="alert-detail" data-id={id}>
      {problem && <Refused problem={problem} retry={reload} />}
      <div class="panel">
        <Head alert={alert} rule={rule} rules={rules} reload={reload} close={close} />
        {isSignal(alert.metric) ? (
          <p class="body t2">{signalWords.explained[alert.metric]}</p>
        ) : (
          <div class="body">
            <AroundChart alert={alert} known={rule !== null} />
          </div>
        )}
      </div>
      <div class="two">
        <HappenedPanel alert={alert} />
        <Numbers alert={alert} rule={rule} />
      </div>
    </section>
  );
}

interface HeadProps {
  readonly alert: AlertDetail;
  readonly rule: Rule | null;
  readonly rules: readonly Rule[];
  reload(): void;
  close(): void;
}

function Head({ alert, rule, rules, reload, close }: HeadProps) {
  const health = isOpen(alert) && rule ? healthNow(alert, rule) : "ok";
  const silence = rule && silenceOf(groupOf(alert, rule), listNowMs.value);
  return (
    <div class="alert-head">
      <div class="grow">
        <button type="button" class="btn quiet back" onClick={close}>
          ‹ {said.back}
        </button>
        <div class="row wrap">
          <h2 class="alert-name">{titleOf(alert.rule)}</h2>
          {labelPairs(alert.labels, rule?.by ?? []).map(([name, value]) => (
            <span key={name} class="chip">
              {name} = {value}
            </span>
          ))}
          <span class="chip">{alertWords.severity(alert.severity)}</span>
          {isSignal(alert.metric) && (
            <span class="chip" title={alertWords.signals.why}>
              {alertWords.signals.title}
            </span>
          )}
        </div>
        <div class="row wrap standing">
          <StateTag state={alert.state} pill />
          <HealthTag health={health} why={rule?.why ?? null} />
          {health === "no_data" && silence !== null && (
            <span class="t2">{alertWords.now.silentFor(span(silence))}</span>
          )}
          {!isSignal(alert.metric) && <Verdict verdict={alert.verdict} />}
          <Sentence alert={alert} />
          <Held alert={alert} />
        </div>
        {isSick(health) && rule?.why && <p class="t2 why">{rule.why}</p>}
        <Acts alert={alert} rule={rule} rules={rules} reload={reload} />
      </div>
      <div class="row wrap alert-links">
        {alert.runbook && (
          <a class="btn" href={alert.runbook} target="_blank" rel="noopener noreferrer">
            {said.runbook}
          </a>
        )}
        {alert.metric && !isSignal(alert.metric) && (
          <a class="btn" href={to(`/m/${encodeURIComponent(alert.metric)}`)}>
            <Icon name="metric" small />
            {said.openMetric}
          </a>
        )}
        {rule && (
          <a class="btn" href={to(`/rules/${encodeURIComponent(alert.rule)}`)}>
            <Icon name="bell" small />
            {said.openRule}
          </a>
        )}
      </div>
    </div>
  );
}

const isOpen = (alert: Alert) => alert.state === "firing" || alert.state === "recovering";

/** What crossed what, since when, and for how long. */
function Sentence({ alert }: { alert: AlertDetail }) {
  const open = isOpen(alert);
  const lasted = lengthMs(alert, listNowMs.value);
  const at = (ms: number) => clockOn(ms, listNowMs.value, zone.value, "second");
  const when = open
    ? said.since(at(alert.since_ms))
    : said.fromTo(at(alert.since_ms), at(alert.at_ms));
  return (
    <span class="t2">
      <b class="said-value">{crossing(alert, alert.metric)}</b>, {when}{" "}
      {lasted > 0 && said.lasted(span(lasted))}
    </span>
  );
}

/** What the alert rests on, as far as it is told. */
function Numbers({ alert, rule }: { alert: AlertDetail; rule: Rule | null }) {
  const { value, unit } = alert;
  const ends = endsText(alert, unit);
  return (
    <section class="panel">
      <header>
        <h2>{said.numbers}</h2>
        <span class="sub">{said.numbersSub}</span>
      </header>
      <div class="body">
        <dl class="facts">
          {!isSignal(alert.metric) && (
            <>
              <dt>{said.verdict}</dt>
              <dd>
                {alertWords.verdicts[alert.verdict]}
                <span class="t3">: {alertWords.verdictWhy[alert.verdict]}</span>
              </dd>
            </>
          )}
          <dt>{said.value}</dt>
          <dd title={exact(value)}>
            {amountOf(value, alert)} {ends && <span class="t3">{said.within(ends)}</span>}
          </dd>
          <dt>{said.limit}</dt>
          <dd>{limitText(alert.limit, unit, alert.metric)}</dd>
          {!isSignal(alert.metric) && <Window alert={alert} rule={rule} />}
          <dt>{said.rule}</dt>
          <dd>
            <RuleName alert={alert} rule={rule} />
          </dd>
          {alert.reason && (
            <>
              <dt>{said.reason}</dt>
              <dd>{alert.reason}</dd>
            </>
          )}
        </dl>
      </div>
    </section>
  );
}

/** Which window of events the numbers are of. */
function Window({ alert, rule }: { alert: AlertDetail; rule: Rule | null }) {
  const ended = clockOn(alert.since_ms, listNowMs.value, zone.value, "second");
  return (
    <>
      {rule && (
        <>
          <dt>{said.window}</dt>
          <dd>{said.windowOf(lengthWords(rule.window_ms), ended)}</dd>
        </>
      )}
      <dt>{said.events}</dt>
      <dd>{said.counted(integer(alert.count))}</dd>
      <dt>{said.metric}</dt>
      <dd>
        <a class="mono" href={to(`/m/${encodeURIComponent(alert.metric)}`)}>
          {alert.metric}
        </a>
      </dd>
    </>
  );
}

function RuleName({ alert, rule }: { alert: AlertDetail; rule: Rule | null }) {
  const version = said.version(alert.rule_version);
  if (!rule) {
    return (
      <>
        <code>{alert.rule}</code> <span class="t3">{version}</span>
      </>
    );
  }
  const newer = rule.version === alert.rule_version ? "" : `, ${said.newer(rule.version)}`;
  return (
    <>
      <a class="mono" href={to(`/rules/${encodeURIComponent(alert.rule)}`)}>
        {alert.rule}
      </a>{" "}
      <span class="t3">
        {version}
        {newer}
      </span>
    </>
  );
}
