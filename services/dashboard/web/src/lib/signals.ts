/** Signals: what a rule can watch of Weir itself, in place of a metric. Pure. */
import { alertWords } from "../messages.alerts.en";
import { withUnit } from "./numbers";
import { span } from "./time";

const PREFIX = "weir.";
const SECOND_MS = 1_000;

/** Tells whether what a rule names as its metric is a signal. */
export const isSignal = (metric: string): boolean => metric.startsWith(PREFIX);

/** What a number is of: a metric and its aggregate, or a signal, which has but one. */
export interface Measured {
  readonly metric: string;
  readonly aggregate: string;
  readonly unit: string;
}

/** Returns what a number is called in a sentence: `p95`, or of a signal `memory of Redis`. */
export function nounOf({ metric, aggregate }: Omit<Measured, "unit">): string {
  return isSignal(metric) ? (alertWords.signals.nouns[metric] ?? metric) : aggregate;
}

/** Returns a number with its unit; the seconds of a signal as a length: `90 min`. */
export function amountOf(
  value: number | null | undefined,
  { metric, unit }: Omit<Measured, "aggregate">,
): string {
  const isLength = isSignal(metric) && unit === "s" && typeof value === "number";
  return isLength ? span(value * SECOND_MS) : withUnit(value, unit);
}
