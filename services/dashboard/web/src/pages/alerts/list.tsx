/** The list beside the chosen alert: what is, or what was. */
import { useEffect, useRef } from "preact/hooks";
import type { Alert, Rule } from "../../api/shapes";
import { Icon } from "../../components/icon";
import { StateTag } from "../../components/state-tag";
import { estimateText } from "../../lib/ends";
import { crossing, seriesText } from "../../lib/limit-words";
import { titleOf } from "../../lib/rule-title";
import { isSignal } from "../../lib/signals";
import { type Health, LOOKS, silenceOf } from "../../lib/standing";
import { clockOn, span } from "../../lib/time";
import { to, zone } from "../../lib/view";
import { alertWords } from "../../messages.alerts.en";
import { actWords } from "../../messages.channels.en";
import { addressOf, listNowMs } from "./choice";
import { groupOf, lengthMs, type Row, type Section } from "./now";

const said = alertWords.now;
const MORE = 50;

/** Choosing an alert, and which is chosen. */
export interface Choosing {
  readonly chosen: string | null;
  addressOf(id: string): string;
  choose(id: string): void;
}

interface SectionProps extends Choosing {
  readonly section: Section;
  /** How many rows are shown. */
  readonly most: number;
  more(): void;
}

/** The rows of one state under its word. */
export function SectionRows({ section, most, more, ...choosing }: SectionProps) {
  const { state, rows } = section;
  const left = rows.length - most;
  const head = state === "changed" ? said.changed : alertWords.states[state];
  return (
    <>
      <h2 class="group-h">
        <span>{head}</span> <span>{rows.length}</span>
      </h2>
      <ul class="alerts-list" data-section={state}>
        {rows
          .slice(0, most)
          .map((row) =>
            row.kind === "alert" ? (
              <AlertRow
                key={row.alert.id}
                alert={row.alert}
                rule={row.rule}
                health={row.health}
                {...choosing}
              />
            ) : row.kind === "sick" ? (
              <SickRow key={row.rules[0].name} rules={row.rules} />
            ) : (
              <SeriesRow key={`${row.rule.name} ${JSON.stringify(row.group.by)}`} row={row} />
            ),
          )}
      </ul>
      {left > 0 && (
        <button type="button" class="btn quiet" onClick={more}>
          {alertWords.history.more(Math.min(left, MORE))}
        </button>
      )}
    </>
  );
}

interface AlertRowProps extends Choosing {
  readonly alert: Alert;
  readonly rule: Rule | null;
  readonly health?: Health;
}

/** One alert: its rule and series, state, numbers, and for how long. */
export function AlertRow(props: AlertRowProps) {
  const { alert, rule, chosen, health = "ok" } = props;
  const row = useRef<HTMLAnchorElement>(null);
  const current = alert.id === chosen;
  useEffect(() => {
    if (current) row.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const open = alert.state === "firing" || alert.state === "recovering";
  const series = seriesText(alert.labels, rule?.by ?? null);
  const pressed = (click: MouseEvent) => {
    if (click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey || click.altKey) {
      return;
    }
    click.preventDefault();
    props.choose(alert.id);
  };
  return (
    <li>
      <a
        ref={row}
        href={props.addressOf(alert.id)}
        aria-current={current ? "true" : undefined}
        data-testid="alert-row"
        data-id={alert.id}
        data-state={alert.state}
        onClick={pressed}
      >
        <span class="who">{[titleOf(alert.rule), series].filter(Boolean).join(" · ")}</span>
        <StateTag state={alert.state} />
        <span class="what">
          {open ? <Present alert={alert} rule={rule} health={health} /> : endText(alert, rule)}
          {isSignal(rule?.metric ?? "") && <Itself />}
        </span>
        <span class="what">
          {open
            ? span(lengthMs(alert, listNowMs.value))
            : clockOn(alert.at_ms, listNowMs.value, zone.value)}
        </span>
      </a>
    </li>
  );
}

/** That it is about Weir, and not about anybody's events. */
function Itself() {
  return (
    <span class="silent" title={alertWords.signals.why}>
      {alertWords.signals.title}
    </span>
  );
}

type PresentProps = Required<Pick<AlertRowProps, "alert" | "rule" | "health">>;

function Present({ alert, rule, health }: PresentProps) {
  const silence = rule && silenceOf(groupOf(alert, rule), listNowMs.value);
  return (
    <>
      {crossing(alert, rule?.metric)}
      {alert.verdict === "confirmed" && `, ${alertWords.confirmed}`}
      {alert.verdict === "provisional" && <span class="tag-prov">{alertWords.provisional}</span>}
      {health !== "ok" && (
        <span class={health === "error" ? "silent bad" : "silent"} data-health={health}>
          <Icon name={LOOKS[health][0]} small />
          {health === "no_data" && silence !== null
            ? said.silentFor(span(silence))
            : said.healths[health]}
        </span>
      )}
      {alert.ack && (
        <span class="silent" title={alert.ack.note}>
          <Icon name="check" small />
          {alert.ack.by}
        </span>
      )}
      {alert.silenced_by.length > 0 && <span class="silent">{actWords.silenced}</span>}
    </>
  );
}

function endText(alert: Alert, rule: Rule | null): string {
  const lasted = lengthMs(alert, alert.at_ms);
  // Of a rule that was deleted in the window that fired, no length is known.
  const length = lasted > 0 ? span(lasted) : "";
  if (alert.state === "withdrawn") return `${crossing(alert, rule?.metric)}: ${said.withdrawn}`;
  if (alert.state === "ended") return said.ended(alert.reason ?? "", length);
  return [crossing(alert, rule?.metric), length && said.firedFor(length)]
    .filter(Boolean)
    .join(", ");
}

/** What is not evaluated for one reason: what is wrong, and what to do. */
function SickRow({ rules: [rule, ...others] }: { rules: readonly [Rule, ...Rule[]] }) {
  const more = others.length > 0 ? said.moreRules(others.length) : "";
  return (
    <li>
      <a
        href={others.length > 0 ? addressOf("rules", null) : to(`/rules/${rule.name}`)}
        data-testid="sick-rule"
        data-rule={rule.name}
      >
        <span class="who">{[titleOf(rule.name), more].filter(Boolean).join(" ")}</span>
        <StateTag state={rule.health} />
        <span class="what">{rule.why}</span>
      </a>
    </li>
  );
}

/** A series that is pending or silent: it has no alert of its own, its rule says more. */
function SeriesRow({ row }: { row: Extract<Row, { kind: "series" }> }) {
  const { rule, group } = row;
  const series = seriesText(group.by, rule.by);
  const silent = group.health === "no_data" && group.state !== "pending";
  const value = estimateText(group, rule);
  return (
    <li>
      <a href={to(`/rules/${encodeURIComponent(rule.name)}`)} data-testid="series-state-row">
        <span class="who">{[titleOf(rule.name), series].filter(Boolean).join(" · ")}</span>
        <StateTag state={silent ? "no_data" : "pending"} />
        <span class="what">{seriesSaid(row, silent, value)}</span>
      </a>
    </li>
  );
}

function seriesSaid(
  { group }: Extract<Row, { kind: "series" }>,
  silent: boolean,
  value: string,
): string {
  if (!silent)
    return said.pendingSince(span(listNowMs.value - (group.since_ms ?? listNowMs.value)));
  const kept = alertWords.states[group.state].toLowerCase();
  const silence = silenceOf(group, listNowMs.value);
  return [
    silence === null ? "" : said.silentFor(span(silence)),
    group.value === null ? said.stateKept(kept) : said.lastValue(value, kept),
  ]
    .filter(Boolean)
    .join(", ");
}
