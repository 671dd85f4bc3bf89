/** The time around an alert, and the query that draws it. Pure. */
import type { Alert } from "../../api/shapes";
import type { LimitLine } from "../../charts/limits";
import { limitText, type SideName, sideOf } from "../../lib/limit-words";
import { type Condition, conditionOf } from "../../lib/query";
import { lengthOf, lengthText } from "../../lib/time";
import { alertWords } from "../../messages.alerts.en";

const LEAD_MS = 600_000;
const MOST_LEAD_MS = 6 * 3_600_000;
const POINTS = 160;

/** What of a rule's definition a chart needs. */
export interface Asks {
  readonly metric: string;
  readonly aggregate: string;
  readonly windowMs: number;
  readonly by: readonly string[];
  readonly where: readonly Condition[];
  readonly recover: number | readonly number[] | null;
}

/** Returns what a stored rule asks; null if it cannot be read. */
export function asksOf(parsed: Readonly<Record<string, unknown>>): Asks | null {
  const { metric, aggregate, window, by, where, recover } = parsed;
  const length = (window as { length?: unknown } | undefined)?.length;
  const windowMs = typeof length === "string" ? lengthOf(length) : null;
  if (typeof metric !== "string" || typeof aggregate !== "string" || windowMs === null) return null;
  const conditions = Array.isArray(where) ? where.map(conditionOf).filter((c) => c !== null) : [];
  const several = Array.isArray(recover) ? recover.map(Number) : null;
  return {
    metric,
    aggregate,
    windowMs,
    by: Array.isArray(by) ? by.map(String) : [],
    where: conditions,
    recover: typeof recover === "number" ? recover : several,
  };
}

/** A span of time and the step of its points. */
export interface Around {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
}

/** What is known of time, and how long the metric keeps panes, by their length. */
export interface Clock {
  readonly nowMs: number;
  readonly resolutionMs: number;
  readonly keepMs: Readonly<Record<string, number>>;
}

/**
 * Returns the time around an alert: what led to it, all of it, and what came after.
 *
 * Its ends fall on steps, so that a reading a second later asks for the same points.
 */
export function aroundOf(
  alert: Pick<Alert, "state" | "since_ms" | "at_ms">,
  windowMs: number,
  clock: Clock,
): Around {
  const { nowMs } = clock;
  const open = alert.state === "firing" || alert.state === "recovering";
  const endMs = open ? nowMs : alert.at_ms;
  const wanted = Math.max(LEAD_MS, 3 * windowMs, endMs - alert.since_ms);
  const lead = Math.min(wanted, Math.max(MOST_LEAD_MS, 3 * windowMs));
  const lastMs = open ? nowMs : Math.min(nowMs, endMs + lead / 2);
  const firstMs = alert.since_ms - lead;
  const paneMs = keptPane(clock, firstMs - windowMs, windowMs);
  const panes = Math.ceil((lastMs - firstMs) / POINTS / paneMs);
  const stepMs = Math.max(1, panes) * paneMs;
  return {
    fromMs: Math.floor(firstMs / stepMs) * stepMs,
    toMs: Math.floor(lastMs / stepMs) * stepMs,
    stepMs,
  };
}

/** Returns the length of the finest panes that are kept since an instant and fill a window. */
function keptPane({ nowMs, resolutionMs, keepMs }: Clock, sinceMs: number, windowMs: number) {
  const kept = Object.entries(keepMs)
    .filter(([pane, keep]) => windowMs % Number(pane) === 0 && nowMs - keep <= sinceMs)
    .map(([pane]) => Number(pane));
  return kept.length > 0 ? Math.min(...kept) : resolutionMs;
}

/** Returns the query of an alert's series over the time around it. */
export function queryAround(
  asks: Asks,
  labels: Alert["labels"],
  around: Around,
): Record<string, unknown> {
  const own = asks.by.map((name): Condition => [name, "=", labels[name] ?? null]);
  const where = [...asks.where, ...own];
  return {
    metric: asks.metric,
    aggregate: asks.aggregate,
    window: { kind: "sliding", length: lengthText(asks.windowMs) },
    ...(where.length > 0 && { where }),
    range: { from: around.fromMs, to: around.toMs },
    step: lengthText(around.stepMs),
  };
}

/** Returns the lines of an alert's limit, and of where it recovers if that is elsewhere. */
export function limitLines(
  alert: Pick<Alert, "limit" | "value" | "unit">,
  side: SideName | null,
  recover: Asks["recover"],
): readonly LimitLine[] {
  const known = side ?? sideOf(alert);
  const limits = [alert.limit ?? []].flat();
  const backs = recover === null ? [] : [recover].flat();
  const told = (value: number) => limitText(value, alert.unit);
  const sides = known === "outside" ? (["below", "above"] as const) : [known ?? "above"];
  const lines = limits.map((value, at): LimitLine => {
    const its = sides[at] ?? "above";
    const text = alertWords.chart.fire(alertWords.sides[its], told(value));
    return { value, text, tone: "limit", below: its === "below" };
  });
  const recovers = backs
    .filter((value) => !limits.includes(value))
    .map((value, at): LimitLine => {
      const its = sides[at] ?? "above";
      const text = alertWords.chart.recover(told(value));
      return { value, text, tone: "recover", below: its !== "below" };
    });
  return [...lines, ...recovers];
}
