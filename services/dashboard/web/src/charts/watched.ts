/** What rules have to do with a chart: their limits, and since when they fire. Pure. */
import type { Alert, Rule } from "../api/shapes";
import { limitText } from "../lib/limit-words";
import { titleOf } from "../lib/rule-title";
import { alertWords } from "../messages.alerts.en";
import type { LimitLine, TimeSpan } from "./limits";
import type { Plot } from "./plot";

/** What a chart shows. */
export interface Shown {
  readonly metric: string;
  readonly aggregates: readonly string[];
  /** Length of its windows; null where that is not known yet. */
  readonly windowMs: number | null;
}

/** What grows with the window says something else over another one. */
const GROWS = /^(count|sum|distinct|min|max)/;
/** A limit farther from the lines than this, in their own height, would flatten them. */
const REACH = 2;

/** Returns the rules whose limit means on this chart what it means to them. */
export function rulesOn(rules: readonly Rule[], shown: Shown): readonly Rule[] {
  return rules.filter(
    (rule) =>
      rule.metric === shown.metric &&
      rule.mode !== "stopped" &&
      shown.aggregates.includes(rule.aggregate) &&
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
