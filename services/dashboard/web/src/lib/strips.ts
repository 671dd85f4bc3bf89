/** What a backtest says, as strips and words. Pure. */
import type { Backtest, BacktestGroup, BacktestSpan } from "../api/schema";

/** A span of a strip, in shares of the whole. */
export interface Piece {
  readonly state: BacktestSpan["state"];
  readonly from: number;
  readonly width: number;
}

/** A group, with what it would have done. */
export interface Strip {
  /** Its values, such as `eu · /pay`; empty where there is one group for all. */
  readonly name: string;
  readonly pieces: readonly Piece[];
  readonly fired: number;
  readonly firingMs: number;
  readonly pendingMs: number;
  readonly silentMs: number;
}

const MOST = 12;

/** Returns the strips of a backtest, those that fired first, and how many quiet ones are left out. */
export function stripsOf(test: Backtest): {
  readonly strips: readonly Strip[];
  readonly more: number;
} {
  const all = test.groups.map((group) => stripOf(group, test));
  const rank = (one: Strip) =>
    one.fired > 0 ? 0 : one.pendingMs > 0 ? 1 : one.silentMs > 0 ? 2 : 3;
  const order = all.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  const telling = order.filter((one) => rank(one) === 0).length;
  const shown = order.slice(0, Math.max(MOST, telling));
  return { strips: shown, more: order.length - shown.length };
}

function stripOf(group: BacktestGroup, { from_ms, to_ms }: Backtest): Strip {
  const whole = Math.max(1, to_ms - from_ms);
  const share = (ms: number) => Math.min(1, Math.max(0, (ms - from_ms) / whole));
  const pieces = group.spans.map((span) => ({
    state: span.state,
    from: share(span.from_ms),
    width: share(span.to_ms) - share(span.from_ms),
  }));
  const of = (state: Piece["state"]) => group.spans.filter((span) => span.state === state);
  return {
    name: Object.values(group.by)
      .map((value) => value ?? "–")
      .join(" · "),
    pieces,
    fired: of("firing").length,
    firingMs: lengthOf(of("firing")),
    pendingMs: lengthOf(of("pending")),
    silentMs: lengthOf(of("no_data")),
  };
}

const lengthOf = (spans: readonly BacktestSpan[]) =>
  spans.reduce((all, span) => all + span.to_ms - span.from_ms, 0);
