/** The backtest of a text over the last 24 h, at some limits around its own as well. */
import { post } from "../../api/client";
import type { Backtest } from "../../api/schema";
import { nowMs } from "../../live/live";
import { type Asked, useAsked } from "./use-asked";

export const DAY_MS = 86_400_000;
const LIMITS = 9;

export type Tested = Asked<Backtest>;

/** Asks when a rule would have fired in the last 24 h; null asks nothing. */
export const useBacktest = (text: string | null): Tested => useAsked(text, tried);

function tried(rule: string, signal: AbortSignal): Promise<Backtest> {
  const toMs = Math.floor(nowMs.peek());
  const asked = { rule, from_ms: toMs - DAY_MS, to_ms: toMs, sweep: LIMITS };
  return post<Backtest>("/backtest", asked, signal);
}
