/** Rules and alerts in words: limits, comparisons, labels. Pure. */
import type { Alert, Rule } from "../api/shapes";
import { alertWords as said } from "../messages.alerts.en";
import { estimateText } from "./ends";
import { short } from "./numbers";
import { amountOf, nounOf } from "./signals";

export type Limit = number | readonly number[] | null;
export type SideName = Rule["side"];

/** Returns a limit without its side: `400 ms`, `5 to 400 ms`. */
export function limitText(limit: Limit, unit: string, metric = ""): string {
  if (limit === null || typeof limit === "number") return amountOf(limit, { metric, unit });
  const [low, high] = limit;
  return said.between(short(low), amountOf(high, { metric, unit }));
}

/**
 * Returns which side of its limit an alert is on.
 *
 * An alert does not say it; the value that fired is beyond the limit, so it tells.
 */
export function sideOf(alert: Pick<Alert, "limit" | "value">): SideName | null {
  const { limit, value } = alert;
  if (Array.isArray(limit)) return "outside";
  if (typeof limit !== "number" || value === null) return null;
  return value < limit ? "below" : "above";
}

/**
 * Returns what crossed what: `p95 617 ms (592 – 648 ms) > 400 ms`; of silence, that there was no
 * data.
 *
 * Lists of alerts do not say of which metric they are; their rules do.
 */
export function crossing(alert: Alert, metric = ""): string {
  const side = sideOf(alert);
  if (alert.value === null || side === null) return said.silent;
  const of = { metric, aggregate: alert.aggregate, unit: alert.unit };
  const value = `${nounOf(of)} ${estimateText(alert, of)}`;
  return `${value} ${said.signs[side]} ${limitText(alert.limit, alert.unit, metric)}`;
}

type Limited = Pick<Rule, "metric" | "aggregate" | "side" | "limit" | "unit">;

/** Returns a rule's limit as a sentence: `p95 above 400 ms`. */
export function limitSentence(rule: Limited): string {
  return `${nounOf(rule)} ${said.sides[rule.side]} ${limitText(rule.limit, rule.unit, rule.metric)}`;
}

type Labels = Readonly<Record<string, string | null>>;

/** Returns labels as pairs: those of the rule's dimensions first, as it lists them. */
export function labelPairs(labels: Labels, by: readonly string[]): [string, string][] {
  const known = new Map(Object.entries(labels));
  const first = by.filter((name) => known.has(name));
  const names = [...first, ...[...known.keys()].filter((name) => !first.includes(name))];
  return names.map((name) => [name, known.get(name) ?? said.none]);
}

/** Returns the values of the rule's dimensions, such as `region=eu`; of no rule all labels. */
export function seriesText(labels: Labels, by: readonly string[] | null): string {
  const pairs = labelPairs(labels, by ?? []);
  const shown = by === null ? pairs : pairs.filter(([name]) => by.includes(name));
  return shown.map(([name, value]) => `${name}=${value}`).join(" · ");
}
