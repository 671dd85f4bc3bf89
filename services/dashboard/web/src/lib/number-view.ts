/** What a number tile says about an answer. Pure: every word of it is decided here. */
import type { Feed } from "../live/feed";
import { isCapped, type Model, overIn, type Series } from "../live/model";
import { words } from "../messages.en";
import { bounds, change, grows, integer, NONE, percent, pieces, short, unitOf } from "./numbers";
import { clock, span, type Zone } from "./time";
import { type Why, whyNone } from "./unknown";

/** State of a tile: never a number without what it is worth. */
export type TileState =
  | "loading"
  | "live"
  | "empty"
  | "error"
  | "stale"
  | "disconnected"
  | "incomplete"
  | "rebuilding";

export interface NumberView {
  readonly state: TileState;
  readonly value: string;
  readonly unit: string;
  /** May still change: drawn with the hatch. */
  readonly open: boolean;
  readonly detail: string;
  /** Of an estimate how far off it may be, also while it is old; else empty. */
  readonly band: string;
  /** Such as `▲ 12 %`, and what it is measured against. */
  readonly change: string;
  readonly versus: string;
  readonly exact: number | null;
}

/** What a tile depends on besides its answer. */
export interface TileContext {
  readonly aggregate: string;
  /** How long the windows are that were asked for; null: as long as a step, of nobody's choice. */
  readonly windowMs: number | null;
  /** How far back the newest window may lie; null: as far as the answer goes. */
  readonly backMs: number | null;
  readonly rangeWords: string;
  readonly zone: Zone;
  readonly nowMs: number;
  /** As judged by the server. */
  readonly staleMs: number | null;
  /** When this screen last heard of the server, if it has lost it. */
  readonly lostMs: number | null;
}

const BLANK = {
  value: NONE,
  open: false,
  band: "",
  change: "",
  versus: "",
  exact: null,
} as const;

/** Returns what a tile shows. */
export function numberView(feed: Feed, context: TileContext): NumberView {
  const { model, problem } = feed;
  const unit = unitOf(context.aggregate, model?.metric.unit ?? null);
  if (problem) return { ...BLANK, state: "error", unit: "", detail: problem.message };
  if (!model) return { ...BLANK, state: "loading", value: "", unit: "", detail: "" };
  const series = model.series.values().next().value;
  const at = series ? pointOf(model, series, context) : -1;
  if (!series || at < 0) return unknown(model, series, { ...context, unit });
  return shown(model, series, at, { ...context, unit });
}

function unknown(
  model: Model,
  series: Series | undefined,
  context: TileContext & { unit: string },
): NumberView {
  const from = firstOf(model, context);
  const seen = series && { count: series.count.subarray(from), state: series.state.slice(from) };
  const why = whyOf(model, seen ? [seen] : [], context);
  const isOld = why === "waiting" && context.staleMs !== null;
  const detail = said(why, context);
  return { ...BLANK, state: isOld ? "stale" : "empty", unit: context.unit, detail };
}

function whyOf(model: Model, seen: Parameters<typeof whyNone>[0], { aggregate }: TileContext): Why {
  return whyNone(seen, { aggregates: [aggregate], capped: isCapped(model) });
}

/** Returns why there is no number; how few events there are is told elsewhere. */
function said(why: Why, { rangeWords }: TileContext): string {
  if (why === "none" || why === "few") return words.tile.noEvents(rangeWords);
  const [title] = words.chart.why(rangeWords)[why];
  return title.charAt(0).toLowerCase() + title.slice(1);
}

/** Of windows of so many steps, what the open one still lacks is too little to read as a drop. */
const OPEN_STEPS = 100;

/**
 * Returns the window that a tile shows: the newest one that is known, or -1.
 *
 * Of what only grows in a window it is one that is over, since half a window would read as a
 * drop; the open one only where less than a hundredth of it is to come. Where nobody chose how
 * long windows are, it is always one that is over.
 */
export function pointOf(model: Model, series: Series, context: TileContext): number {
  const { aggregate, windowMs } = context;
  const stepMs = (model.tMs[1] ?? 0) - (model.tMs[0] ?? 0);
  const isNearlyWhole = windowMs !== null && stepMs > 0 && stepMs * OPEN_STEPS <= windowMs;
  const mayBeOpen =
    windowMs !== null && (grows(aggregate) ? isNearlyWhole && aggregate !== "rate" : true);
  let at = (mayBeOpen ? model.tMs.length : overIn(model.tMs, model.throughMs)) - 1;
  const from = firstOf(model, context);
  while (at >= from && !isTold(series, at)) at -= 1;
  return at < from ? -1 : at;
}

/** Returns the first window that is not too far back. */
function firstOf({ tMs }: Model, { backMs }: TileContext): number {
  if (backMs === null) return 0;
  const sinceMs = (tMs.at(-1) ?? 0) - backMs;
  return Math.max(
    0,
    tMs.findIndex((t) => t >= sinceMs),
  );
}

function isTold(series: Series, at: number): boolean {
  const count = series.count[at] ?? Number.NaN;
  return !Number.isNaN(series.value[at]) || count > 0 || series.state[at] === "r";
}

function shown(
  model: Model,
  series: Series,
  at: number,
  context: TileContext & { unit: string },
): NumberView {
  const value = series.value[at] ?? Number.NaN;
  const letter = series.state[at] ?? "n";
  const seen = { count: series.count.subarray(at, at + 1), state: letter };
  const why = Number.isNaN(value) ? whyOf(model, [seen], context) : null;
  const compared = changeOf(model, series, at, context);
  const told = pieces(value, context.unit);
  const band = bandOf(series, at, context);
  return {
    state: stateOf(letter, context),
    value: why === "few" ? words.tile.few : told.text,
    unit: told.unit,
    open: letter === "p" && context.staleMs === null,
    detail: detailOf(model, series, at, { ...context, band, why }),
    band,
    change: compared.text,
    versus: compared.versus,
    exact: Number.isNaN(value) ? null : value,
  };
}

function stateOf(letter: string, { lostMs, staleMs }: TileContext): TileState {
  if (lostMs !== null) return "disconnected";
  if (letter === "r") return "rebuilding";
  if (staleMs !== null) return "stale";
  return letter === "i" ? "incomplete" : "live";
}

function detailOf(
  model: Model,
  series: Series,
  at: number,
  context: TileContext & { band: string; why: Why | null },
): string {
  const tile = words.tile;
  const { aggregate, band, why, zone, nowMs, staleMs, lostMs } = context;
  const old = (when: string) => (band ? `${when}, ${band}` : when);
  if (lostMs !== null) return old(tile.lastSeen(clock(lostMs, zone, "second")));
  if (staleMs !== null) {
    return old(tile.asOf(clock(staleMs, zone, "second"), span(nowMs - staleMs)));
  }
  if (why === "few") return tile.fewWhy(integer(series.count[at]));
  if (why !== null) return said(why, context);
  const accuracy = band || tile.exact;
  const endMs = model.tMs[at] ?? 0;
  if (grows(aggregate) && at >= overIn(model.tMs, model.throughMs)) {
    return `${accuracy} ${tile.openUntil(clock(endMs, zone, "second"))}`;
  }
  if (series.state[at] !== "p") return accuracy;
  return `${accuracy}, ${tile.finalAt(clock(endMs + model.metric.lateness_ms, zone, "second"))}`;
}

function bandOf(
  series: Series,
  at: number,
  { aggregate, unit }: TileContext & { unit: string },
): string {
  const value = series.value[at] ?? Number.NaN;
  const low = series.low[at] ?? value;
  const high = series.high[at] ?? value;
  if (!(low < value || high > value)) return "";
  if (aggregate.startsWith("distinct") && value !== 0) {
    return words.tile.hll(percent(Math.max(high - value, value - low) / value));
  }
  return words.tile.bySketch(bounds(low, high, unit));
}

/**
 * Compares with the window just before, where the answer reaches back so far.
 *
 * Of what grows in a window only those that are over are compared. A share is compared by the
 * points between the two: 2 % after 1 % is no rise of 100 %.
 */
function changeOf(
  model: Model,
  series: Series,
  at: number,
  { aggregate, unit, windowMs }: TileContext & { unit: string },
): { text: string; versus: string } {
  const none = { text: "", versus: "" };
  const over = overIn(model.tMs, model.throughMs) - 1;
  const whole = grows(aggregate) ? Math.min(at, over) : at;
  const value = series.value[whole] ?? Number.NaN;
  if (windowMs === null || Number.isNaN(value)) return none;
  const was = series.value[model.tMs.indexOf((model.tMs[whole] ?? 0) - windowMs)] ?? Number.NaN;
  const inPoints = unit === "%";
  if (Number.isNaN(was) || (!inPoints && was <= 0)) return none;
  const moved = inPoints ? value - was : (100 * (value - was)) / was;
  const arrow = moved > 0.05 ? "▲" : moved < -0.05 ? "▼" : "";
  const text = `${change(Math.abs(moved)).replace("+", "")} ${inPoints ? "pt" : "%"}`;
  return { text: arrow ? `${arrow} ${text}` : "", versus: words.tile.versus(short(was)) };
}
