/** Which alerts and rules are looked for, and in which order: what the address says. Pure. */
import type { Alert, Rule } from "../../api/shapes";
import { seriesText } from "../../lib/limit-words";
import { titleOf } from "../../lib/rule-title";
import { nounOf } from "../../lib/signals";
import { alertWords } from "../../messages.alerts.en";
import { lengthMs, type Row, SEVERITIES, type Section } from "./now";

export const ALERT_ORDERS = ["severity", "newest", "longest"] as const;
export const RULE_ORDERS = ["state", "name", "fired"] as const;
export type AlertOrder = (typeof ALERT_ORDERS)[number];
export type RuleOrder = (typeof RULE_ORDERS)[number];

/** Returns the order that an address asks for; the first where it names none of them. */
export function orderOf<T extends string>(
  params: URLSearchParams,
  orders: readonly [T, ...T[]],
): T {
  return orders.find((one) => one === params.get("sort")) ?? orders[0];
}

/** Tells whether a text has each of the words that somebody typed, in any order. */
export function holds(text: string, wanted: string): boolean {
  const lower = text.toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** Returns what of an alert can be looked for: what a list shows of it. */
export function alertText(alert: Alert): string {
  const state = alertWords.states[alert.state];
  const labels = seriesText(alert.labels, null);
  return [alert.rule, titleOf(alert.rule), labels, alert.severity, state].join(" ");
}

/** Returns what of a rule can be looked for. */
export function ruleText(rule: Rule): string {
  const { name, metric, by, severity, channels } = rule;
  const state = alertWords.states[rule.state];
  const health = rule.health === "ok" ? "" : alertWords.states[rule.health];
  const asked = nounOf(rule);
  return [name, titleOf(name), metric, asked, ...by, severity, ...channels, state, health].join(
    " ",
  );
}

function rowText(row: Row): string {
  if (row.kind === "alert") return alertText(row.alert);
  if (row.kind === "sick") return row.rules.map(ruleText).join(" ");
  return `${ruleText(row.rule)} ${seriesText(row.group.by, row.rule.by)}`;
}

/** Returns the rows of each section that are looked for, in the order asked for. */
export function sectionsSought(
  sections: readonly Section[],
  wanted: string,
  order: AlertOrder,
  nowMs: number,
): readonly Section[] {
  return sections
    .map((section) => {
      const rows = section.rows.filter((row) => holds(rowText(row), wanted));
      // What has just changed is read by when.
      return section.state === "changed" ? { ...section, rows } : sorted(section, rows);
    })
    .filter((section) => section.rows.length > 0);

  function sorted(section: Section, rows: readonly Row[]): Section {
    const alerts = rows.flatMap((row) => (row.kind === "alert" ? [row] : []));
    const others = rows.filter((row) => row.kind !== "alert");
    const compare = comparing(order, nowMs);
    return { ...section, rows: [...alerts.sort((a, b) => compare(a.alert, b.alert)), ...others] };
  }
}

/** Returns the alerts that are looked for, in the order asked for. */
export function alertsSought(
  alerts: readonly Alert[],
  wanted: string,
  order: AlertOrder,
  nowMs: number,
): readonly Alert[] {
  return alerts.filter((alert) => holds(alertText(alert), wanted)).sort(comparing(order, nowMs));
}

function comparing(order: AlertOrder, nowMs: number): (a: Alert, b: Alert) => number {
  const rank = (alert: Alert) => SEVERITIES.indexOf(alert.severity);
  if (order === "severity") return (a, b) => rank(a) - rank(b);
  if (order === "longest") return (a, b) => lengthMs(b, nowMs) - lengthMs(a, nowMs);
  return (a, b) => b.at_ms - a.at_ms;
}

/** Returns the rules that are looked for, in the order asked for; `state`: worst first. */
export function rulesSought(
  rules: readonly Rule[],
  wanted: string,
  order: RuleOrder,
  rank: (rule: Rule) => number,
): readonly Rule[] {
  const byName = (a: Rule, b: Rule) => (a.name < b.name ? -1 : 1);
  const compare = {
    name: byName,
    state: (a: Rule, b: Rule) => rank(a) - rank(b) || byName(a, b),
    fired: (a: Rule, b: Rule) => (b.last_fired_ms ?? 0) - (a.last_fired_ms ?? 0) || byName(a, b),
  }[order];
  return rules.filter((rule) => holds(ruleText(rule), wanted)).sort(compare);
}
