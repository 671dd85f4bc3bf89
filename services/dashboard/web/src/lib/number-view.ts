/** What a number tile says about an answer. Pure: every word of it is decided here. */
import type { Feed } from "../live/feed";
import type { Model, Series } from "../live/model";
import { words } from "../messages.en";
import { bounds, change, integer, NONE, percent, pieces, short, unitOf } from "./numbers";
import { clock, span, type Zone } from "./time";

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
  readonly windowMs: number | null;
  readonly rangeWords: string;
  readonly zone: Zone;
  readonly nowMs: number;
  /** As judged by the server. */
  readonly throughMs: number | null;
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
  if (!series || at < 0) {
    return { ...BLANK, state: "empty", unit, detail: words.tile.noEvents(context.rangeWords) };
  }
  return shown(model, series, at, { ...context, unit });
}

/**
 * Returns the window that a tile shows: the newest one that is known.
 *
 * A rate is told of the newest window that is over: half a window would read as a drop.
 */
export function pointOf(model: Model, series: Series, context: TileContext): number {
  let at = model.tMs.length - 1;
  const through = context.throughMs;
  if (context.aggregate === "rate" && through !== null) {
    while (at > 0 && (model.tMs[at] ?? 0) > through) at -= 1;
  }
  while (at >= 0 && !isTold(series, at)) at -= 1;
  return at;
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
  const count = series.count[at] ?? Number.NaN;
  const few = Number.isNaN(value) && count > 0;
  const compared = changeOf(model, series, at, context.windowMs);
  const told = pieces(value, context.unit);
  const band = bandOf(series, at, context);
  return {
    state: stateOf(letter, context),
    value: few ? words.tile.few : told.text,
    unit: told.unit,
    open: letter === "p" && context.staleMs === null,
    detail: detailOf(model, series, at, { ...context, band }),
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
  context: TileContext & { band: string },
): string {
  const said = words.tile;
  const { band, zone, nowMs, staleMs, lostMs } = context;
  const old = (when: string) => (band ? `${when}, ${band}` : when);
  if (lostMs !== null) return old(said.lastSeen(clock(lostMs, zone, "second")));
  if (staleMs !== null) {
    return old(said.asOf(clock(staleMs, zone, "second"), span(nowMs - staleMs)));
  }
  const count = series.count[at] ?? Number.NaN;
  if (Number.isNaN(series.value[at])) return said.fewWhy(integer(count));
  const accuracy = band || said.exact;
  if (series.state[at] !== "p") return accuracy;
  const finalMs = (model.tMs[at] ?? 0) + model.metric.lateness_ms;
  return `${accuracy}, ${said.finalAt(clock(finalMs, zone, "second"))}`;
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

/** Compares with the window just before, where the answer reaches back so far. */
function changeOf(
  model: Model,
  series: Series,
  at: number,
  windowMs: number | null,
): { text: string; versus: string } {
  const none = { text: "", versus: "" };
  const value = series.value[at];
  if (windowMs === null || value === undefined) return none;
  const before = model.tMs.indexOf((model.tMs[at] ?? 0) - windowMs);
  const was = series.value[before];
  if (before < 0 || was === undefined || !(was > 0) || Number.isNaN(value)) return none;
  const share = (value - was) / was;
  const arrow = share > 0.0005 ? "▲" : share < -0.0005 ? "▼" : "";
  const text = `${change(Math.abs(share) * 100).replace("+", "")} %`;
  return { text: arrow ? `${arrow} ${text}` : "", versus: words.tile.versus(short(was)) };
}
