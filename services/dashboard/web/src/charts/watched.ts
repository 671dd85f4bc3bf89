/** What rules have to do with a chart: their limits, and since when they fire. Pure. */
import type { Alert, Rule } from "../api/shapes";
import { limitText } from "../lib/limit-words";
import { type Asking, type Condition, conditionOf } from "../lib/query";
import { titleOf } from "../lib/rule-title";
import { lengthOf } from "../lib/time";
import { alertWords } from "../messages.alerts.en";
import type { LimitLine, TimeSpan } from "./limits";
import type { Plot } from "./plot";

/** What a chart shows. */
export interface Shown {
  readonly metric: string;
  readonly aggregates: readonly string[];
  /** Length of its windows; null where that is not known yet. */
  readonly windowMs: number | null;
  /** Dimensions that it has a line for each value of. */
  readonly by: readonly string[];
  readonly where: readonly Condition[];
}

/** What grows with the window says something else over another one. */
const GROWS = /^(count|sum|distinct|theta|min|max|last)/;
/** A limit farther from the lines than this, in their own height, would flatten them. */
const REACH = 2;

/** Returns what a chart shows that asks this, for each of its aggregates. */
export function shownOf(asking: Asking, aggregates: readonly string[]): Shown {
  const { metric, window, by = [], where = [] } = asking;
  const windowMs = window?.length === undefined ? null : lengthOf(window.length);
  return { metric, aggregates, windowMs, by, where };
}

/**
 * Returns the rules whose limit means on this chart what it means to them: a line beyond it
 * is what they fire on.
 *
 * So they ask for the same series. Another filter is about other events. Other groups add up
 * or grow to something else; and though an average or a percentile of all lies between those
 * of its parts, it can be within while a part is beyond, and a part beyond while it is within:
 * the line would say that all is well while the rule fires, or the other way round.
 */
export function rulesOn(rules: readonly Rule[], shown: Shown): readonly Rule[] {
  return rules.filter(
    (rule) =>
      rule.metric === shown.metric &&
      rule.mode !== "stopped" &&
      shown.aggregates.includes(rule.aggregate) &&
      sameOf(rule.by.map(nameOf), shown.by.map(nameOf)) &&
      sameOf(rule.where.map(conditionOf).map(textOf), shown.where.map(textOf)) &&
      (!GROWS.test(rule.aggregate) || rule.window_ms === shown.windowMs),
  );
}

/** Returns their limits that lie in reach of the lines, each with its sentence. */
export function limitsOn(rules: readonly Rule[], plot: Plot): readonly LimitLine[] {
  const [low, high] = extent(plot);
  if (low > high) return [];
  const reach = REACH * Math.max(high - low, Math.abs(high), Number.MIN_VALUE);
  return rules.flatMap((rule) =>
    endsOf(rule)
      .filter(({ value }) => value >= low - reach && value <= high + reach)
      .map(({ value, side }): LimitLine => {
        const limit = `${alertWords.sides[side]} ${limitText(value, rule.unit)}`;
        const text = `${titleOf(rule.name)}: ${limit}`;
        return { value, text, tone: "limit", below: side === "below" };
      }),
  );
}

/** Returns from when to when one of the rules fires. */
export function firingOn(
  rules: readonly Rule[],
  open: readonly Alert[],
  nowMs: number,
): readonly TimeSpan[] {
  const names = new Set(rules.map((rule) => rule.name));
  return open
    .filter((alert) => names.has(alert.rule) && alert.since_ms < nowMs)
    .map((alert) => [alert.since_ms, nowMs] as const);
}

/** Tells whether two lists hold the same, in any order: conditions all hold, groups are named. */
function sameOf(some: readonly string[], others: readonly string[]): boolean {
  const [one, other] = [new Set(some), new Set(others)];
  return one.size === other.size && [...one].every((text) => other.has(text));
}

/** Returns a dimension's short name: it may be asked for by its path as well. */
function nameOf(dimension: string): string {
  return dimension.replace(/^data\./, "");
}

/** Returns one text for all ways to write a condition. */
function textOf(condition: Condition | null): string {
  if (condition === null) return "";
  const [dimension, op, value] = condition;
  const name = nameOf(dimension);
  if (op !== "in" || !Array.isArray(value)) return JSON.stringify([name, op, value]);
  const values = [...new Set(value)];
  if (values.length === 1) return textOf([name, "=", values[0]]);
  return JSON.stringify([name, op, values.map((one) => JSON.stringify(one)).sort()]);
}

function endsOf(rule: Rule): readonly { value: number; side: "above" | "below" }[] {
  if (typeof rule.limit === "number") {
    return [{ value: rule.limit, side: rule.side === "below" ? "below" : "above" }];
  }
  const [low, high] = rule.limit;
  return [
    { value: low ?? Number.NaN, side: "below" },
    { value: high ?? Number.NaN, side: "above" },
  ];
}

function extent(plot: Plot): readonly [low: number, high: number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const line of plot.lines) {
    for (const value of line.value.subarray(0, line.drawn)) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}
