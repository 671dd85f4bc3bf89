/** The same rule at other limits: what the form says once one of them is taken. Pure. */
import type { BacktestLimit } from "../api/schema";
import type { RuleForm } from "./rule-text";

/** One limit of a sweep, as it is shown. */
export interface Tried {
  readonly limit: BacktestLimit["limit"];
  readonly fired: number;
  readonly firingMs: number;
  /** Its part of the longest time, 0 to 1. */
  readonly share: number;
  /** Whether it is the rule's own. */
  readonly own: boolean;
}

/**
 * Returns the limits of a sweep with their shares; the longest fills the row.
 *
 * The time, and not how often: what fires once and for ever is the worst of all.
 */
export function triedOf(sweep: readonly BacktestLimit[], form: RuleForm): readonly Tried[] {
  const most = Math.max(1, ...sweep.map((one) => one.firing_ms));
  return sweep.map(({ limit, fired, firing_ms }) => ({
    limit,
    fired,
    firingMs: firing_ms,
    share: firing_ms / most,
    own: isOwn(limit, form),
  }));
}

function isOwn(limit: BacktestLimit["limit"], form: RuleForm): boolean {
  if (typeof limit !== "number") {
    return limit[0] === Number(form.low) && limit[1] === Number(form.high);
  }
  return limit === Number(form.side === "below" ? form.low : form.high);
}

/**
 * Returns what changes in the form when a limit of the sweep is taken.
 *
 * What it recovers at keeps its distance, as it did when it was tried.
 */
export function taken(limit: BacktestLimit["limit"], form: RuleForm): Partial<RuleForm> {
  if (typeof limit !== "number") {
    const [low = 0, high = 0] = limit;
    return {
      low: String(low),
      high: String(high),
      backLow: moved(form.backLow, low - Number(form.low)),
      backHigh: moved(form.backHigh, high - Number(form.high)),
    };
  }
  if (form.side === "below") {
    return { low: String(limit), backLow: moved(form.backLow, limit - Number(form.low)) };
  }
  return { high: String(limit), backHigh: moved(form.backHigh, limit - Number(form.high)) };
}

/** Returns a number in a field moved, without the dust of binary fractions; empty stays empty. */
function moved(text: string, by: number): string {
  return text === "" ? "" : String(Number((Number(text) + by).toPrecision(12)));
}
