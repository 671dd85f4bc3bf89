/**
 * From answers to lines: what a chart draws, decided without a canvas. Pure.
 *
 * Gaps are gaps: what is not known is NaN and breaks the line. A window that is not over
 * yet is not drawn of what only grows in it (count, rate, sum, distinct), because half a
 * window drawn beside whole ones looks like a drop; tables and tiles have its number.
 */

import { grows, unitOf } from "../lib/numbers";
import { DASHES, type Stroke, strokeOf } from "../lib/palette";
import { isCapped, type Model, overIn, type Series } from "../live/model";
import type { Correction } from "../live/wire";
import { words } from "../messages.en";

/** One line with its error band. */
export interface Line {
  readonly id: string;
  readonly aggregate: string;
  readonly name: string;
  readonly stroke: Stroke;
  readonly value: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly count: Float64Array;
  /** A letter a window: n r i p f. */
  readonly state: string;
  /** How many windows are drawn: all, or those that are over. */
  readonly drawn: number;
  /** Whether low and high say more than the value. */
  readonly banded: boolean;
  /** Earlier time, drawn dotted and gray. */
  readonly ghost: boolean;
  /** The line down to which a percentile band is filled. */
  readonly fillTo: string | null;
  readonly corrections: readonly Correction[];
}

/** All lines of a chart over the same instants. */
export interface Plot {
  readonly tMs: Float64Array;
  readonly lines: readonly Line[];
  /** How many series have lines of their own, of how many; without what is drawn as the others. */
  readonly shown: number;
  readonly of: number;
  /** Of the version of the metric that answered: a page may have read of another. */
  readonly unit: string;
  /** Whether some series have no row of their own, so that not all is known one by one. */
  readonly capped: boolean;
}

/** An answer and the aggregate that was asked. */
export interface Asked {
  readonly model: Model;
  readonly aggregate: string;
}

/** Returns what a series is called: its values, or the aggregate where it has no dimensions. */
export function nameOf(series: Series, aggregate: string): string {
  if (series.other) return words.chart.other;
  if (series.by.length === 0) return aggregate.replace(/\(.*\)$/, "");
  return series.by.map(([, value]) => value ?? "–").join(" · ");
}

/** Returns the lines of one answer, or of several percentiles of one metric. */
export function plotOf(asked: readonly Asked[]): Plot {
  const tMs = unionOf(asked.map(({ model }) => model.tMs));
  const several = asked.length > 1;
  const banded = several && asked.every(({ aggregate }) => /^p\d/.test(aggregate));
  const lines = asked.flatMap(({ model, aggregate }, nth) =>
    [...model.series.values()].sort(bySlot).flatMap((series) => {
      const name = several ? aggregate : nameOf(series, aggregate);
      const own = several ? nth : series.slot;
      const stroke = banded ? bandStroke(nth) : strokeOf(own);
      const before = banded && nth > 0 ? `${asked[nth - 1]?.aggregate}:${series.k}` : null;
      const line = lineOf(series, {
        model,
        aggregate,
        tMs,
        name,
        stroke,
        fillTo: before,
      });
      return [...ghostsOf(series, line, model.tMs, tMs), line];
    }),
  );
  const [first] = asked;
  return {
    tMs,
    lines,
    shown: [...(first?.model.series.values() ?? [])].filter((series) => !series.other).length,
    of: first?.model.of ?? 0,
    unit: first ? unitOf(first.aggregate, first.model.metric.unit) : "",
    capped: asked.some(({ model }) => isCapped(model)),
  };
}

function bySlot(a: Series, b: Series): number {
  return Number(a.other) - Number(b.other) || a.slot - b.slot || a.k - b.k;
}

/** Percentiles of one metric share a hue and differ by dash and fill. */
function bandStroke(nth: number): Stroke {
  return { token: "s1", dash: DASHES[nth % 4] ?? [] };
}

interface Wanted {
  readonly model: Model;
  readonly aggregate: string;
  readonly tMs: Float64Array;
  readonly name: string;
  readonly stroke: Stroke;
  readonly fillTo: string | null;
}

function lineOf(series: Series, wanted: Wanted): Line {
  const { model, tMs } = wanted;
  const state = aligned(series.state, model.tMs, tMs);
  const shown = (at: number) => state[at] !== "r" && state[at] !== "n";
  const numbers = (column: Float64Array) => spread(column, model.tMs, tMs, shown);
  const value = numbers(series.value);
  const low = numbers(series.low);
  const high = numbers(series.high);
  return {
    id: `${wanted.aggregate}:${series.k}`,
    aggregate: wanted.aggregate,
    name: wanted.name,
    stroke: wanted.stroke,
    value,
    low,
    high,
    count: spread(series.count, model.tMs, tMs, () => true),
    state,
    drawn: drawnOf(wanted),
    banded: value.some((v, at) => (high[at] ?? v) > v || (low[at] ?? v) < v),
    ghost: false,
    fillTo: wanted.fillTo,
    corrections: model.corrections.filter((c) => c.k === series.k),
  };
}

/** Returns how many windows are drawn: half ones of what grows are not. */
function drawnOf({ tMs, aggregate, model }: Wanted): number {
  return grows(aggregate) ? overIn(tMs, model.throughMs) : tMs.length;
}

function ghostsOf(series: Series, line: Line, from: Float64Array, tMs: Float64Array): Line[] {
  return series.compare.map((earlier) => {
    const at = (column: Float64Array) => spread(column, from, tMs, () => true);
    const id = `${line.id}@${earlier.offset}`;
    return {
      ...line,
      id,
      name: `${line.name} ${earlier.offset}`,
      stroke: { token: "text-3", dash: [1.5, 3.5] },
      value: at(earlier.value),
      low: at(earlier.low),
      high: at(earlier.high),
      count: at(earlier.count),
      state: aligned(earlier.state, from, tMs),
      banded: false,
      ghost: true,
      fillTo: null,
      corrections: [],
    };
  });
}

function unionOf(columns: readonly Float64Array[]): Float64Array {
  const first = columns[0] ?? new Float64Array();
  if (columns.every((c) => c.length === first.length && c.every((t, at) => t === first[at]))) {
    return first;
  }
  return Float64Array.from(new Set(columns.flatMap((c) => [...c]))).sort();
}

function spread(
  column: Float64Array,
  from: Float64Array,
  to: Float64Array,
  shown: (at: number) => boolean,
): Float64Array {
  const place = from === to ? null : new Map(Array.from(from, (t, at) => [t, at]));
  return Float64Array.from(to, (t, at) => {
    const source = place ? place.get(t) : at;
    return source === undefined || !shown(at) ? Number.NaN : (column[source] ?? Number.NaN);
  });
}

function aligned(state: string, from: Float64Array, to: Float64Array): string {
  if (from === to) return state;
  const place = new Map(Array.from(from, (t, at) => [t, at]));
  return Array.from(to, (t) => state[place.get(t) ?? -1] ?? "n").join("");
}

/** Returns the instant from which windows may still change, or null. */
export function provisionalFrom(plot: Plot): number | null {
  let first = plot.tMs.length;
  for (const line of plot.lines) {
    if (line.ghost) continue;
    const at = line.state.indexOf("p");
    if (at >= 0 && at < first) first = at;
  }
  if (first === plot.tMs.length) return null;
  return first > 0 ? (plot.tMs[first - 1] ?? null) : (plot.tMs[0] ?? null);
}

/** Spans of windows in a state, `[from, to]` in instants, any line counting. */
export function spansIn(plot: Plot, letter: string): (readonly [number, number])[] {
  const spans: [number, number][] = [];
  const stepMs = plot.tMs.length > 1 ? (plot.tMs[1] ?? 0) - (plot.tMs[0] ?? 0) : 0;
  for (let at = 0; at < plot.tMs.length; at += 1) {
    if (!plot.lines.some((line) => !line.ghost && line.state[at] === letter)) continue;
    const t = plot.tMs[at] ?? 0;
    const last = spans.at(-1);
    if (last && last[1] >= t - stepMs) last[1] = t;
    else spans.push([t - stepMs, t]);
  }
  return spans;
}

/** Returns the letters of a plot that have a quiet ground, with their words. */
export function quietIn(plot: Plot): (readonly [letter: string, text: string])[] {
  const { incomplete, rebuilding } = words.chart;
  const grounds = [["i", incomplete] as const, ["r", rebuilding] as const];
  return grounds.filter(([letter]) => spansIn(plot, letter).length > 0);
}

/** A scale: its ends and the step of its marks. */
export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly step: number;
}

/** Returns a step of 1, 2, 2.5 or 5 times a power of ten that makes about `marks` marks. */
export function niceStep(width: number, marks: number): number {
  const rough = width / Math.max(1, marks);
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = rough / power;
  const nice = size <= 1 ? 1 : size <= 2 ? 2 : size <= 2.5 ? 2.5 : size <= 5 ? 5 : 10;
  return nice * power;
}

const MARKS = 4;

/**
 * Returns the scale that shows all lines with their bands.
 *
 * From zero where asked or where it costs little; up to `most` where no value can be
 * above it, such as 100 %. What else must be in sight, such as a limit, is in `also`.
 */
export function scaleOf(
  plot: Plot,
  fromZero: boolean,
  most = Number.POSITIVE_INFINITY,
  also: readonly number[] = [],
): Scale {
  let low = Math.min(Number.POSITIVE_INFINITY, ...also);
  let high = Math.max(Number.NEGATIVE_INFINITY, ...also);
  for (const line of plot.lines) {
    for (const column of [line.value, line.low, line.high]) {
      for (const v of column.subarray(0, line.drawn)) {
        if (v < low) low = v;
        if (v > high) high = v;
      }
    }
  }
  if (low > high) return { low: 0, high: 1, step: 0.25 };
  const nearZero = low >= 0 && low < 0.6 * high;
  if (fromZero || nearZero) low = Math.min(0, low);
  if (high <= 0 && low === 0) return { low: 0, high: 1, step: 0.25 };
  if (high === low) {
    low -= Math.abs(low) * 0.1 || 1;
    high += Math.abs(high) * 0.1 || 1;
  }
  if (low === 0 && high <= most && high > most / 2) return { low, high: most, step: most / MARKS };
  const margin = (high - low) * 0.06;
  const step = niceStep(high - low + margin, MARKS);
  const bottom = low === 0 ? 0 : Math.floor((low - margin) / step) * step;
  return { low: bottom, high: Math.ceil((high + margin) / step) * step, step };
}

/** Returns the marks of a scale. */
export function marksOf(scale: Scale): number[] {
  const count = Math.round((scale.high - scale.low) / scale.step);
  return Array.from({ length: count + 1 }, (_, at) => scale.low + at * scale.step);
}

/** Returns the percentile down to which a line's ground is filled, if it is there. */
export function lineBelow(plot: Plot, line: Line): Line | undefined {
  return line.fillTo === null ? undefined : plot.lines.find((one) => one.id === line.fillTo);
}

/** Returns the lines that stand for each kind of band in the legend, where there is one. */
export function bandsIn(plot: Plot): { between?: Line | undefined; error?: Line | undefined } {
  return {
    between: plot.lines.find((line) => lineBelow(plot, line) !== undefined),
    error: plot.lines.find((line) => line.banded),
  };
}

/** Returns the last window of a line that has events, said or not, or -1. */
export function lastCounted(line: Line): number {
  return line.count.findLastIndex((n) => n > 0);
}

/** Returns the last window of a line that is drawn and has a value, or -1. */
export function lastKnown(line: Line): number {
  let at = line.drawn - 1;
  while (at >= 0 && Number.isNaN(line.value[at])) at -= 1;
  return at;
}
