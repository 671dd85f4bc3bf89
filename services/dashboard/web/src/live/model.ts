/**
 * The answer to a query as the browser holds it, and how deltas are folded into it.
 *
 * What travels is state, not messages: "series k at t is now v". So a repeated or late
 * delta is harmless, and an answer kept up by deltas equals a fresh snapshot.
 *
 * Columns are Float64Arrays in which NaN stands for "not known"; JSON's null becomes
 * NaN here and nowhere else.
 */
import type {
  Cell,
  Correction,
  TopItem,
  WireAnswer,
  WireColumns,
  WireCompare,
  WireDelta,
  WireMetric,
  WireName,
  WireNote,
} from "./wire";

/** Dimension and value. Pairs, because a dimension may be called `__proto__`. */
export type Pair = readonly [name: string, value: string | null];

/** The same series at an earlier time. */
export interface Earlier {
  readonly offset: string;
  readonly value: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly count: Float64Array;
  readonly state: string;
}

/** One series: a cell for each window in every column. */
export interface Series {
  readonly k: number;
  readonly by: readonly Pair[];
  readonly slot: number;
  readonly other: boolean;
  readonly value: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly count: Float64Array;
  readonly items: readonly (readonly TopItem[] | null)[] | null;
  readonly state: string;
  readonly compare: readonly Earlier[];
}

/** An answer with the revision that it stands for. */
export interface Model {
  readonly metric: WireMetric;
  readonly epoch: number;
  readonly rev: number;
  readonly finalToMs: number | null;
  /** Up to where this answer has everything counted, at least; null: not known. */
  readonly throughMs: number | null;
  readonly tMs: Float64Array;
  readonly of: number;
  readonly notes: readonly WireNote[];
  readonly corrections: readonly Correction[];
  readonly series: ReadonlyMap<number, Series>;
}

/** Returns a column as numbers; `undefined` and null become NaN. */
export function column(cells: readonly Cell[] | undefined, length: number): Float64Array {
  const numbers = new Float64Array(length).fill(Number.NaN);
  cells?.forEach((cell, at) => {
    if (cell !== null && at < length) numbers[at] = cell;
  });
  return numbers;
}

/** Returns the model of a whole answer. */
export function modelOf(answer: WireAnswer): Model {
  const length = answer.t_ms.length;
  return {
    metric: answer.metric,
    epoch: answer.epoch,
    rev: answer.rev,
    finalToMs: answer.final_to_ms,
    throughMs: latest(
      answer.fresh?.processed_through_ms,
      throughOf(answer.final_to_ms, answer.metric),
    ),
    tMs: Float64Array.from(answer.t_ms),
    of: answer.of,
    notes: answer.notes ?? [],
    corrections: answer.corrections ?? [],
    series: new Map(answer.series.map((s) => [s.k, seriesOf(s, s, length)])),
  };
}

/** Windows are final an allowed lateness after all of them is counted. */
function throughOf(finalToMs: number | null, metric: WireMetric): number | null {
  return finalToMs === null ? null : finalToMs + metric.lateness_ms;
}

function latest(...instants: readonly (number | null | undefined)[]): number | null {
  const known = instants.filter((one) => one != null);
  return known.length > 0 ? Math.max(...known) : null;
}

/** Returns how many of the windows are over by an instant; all where that is not known. */
export function overIn(tMs: Float64Array, throughMs: number | null): number {
  let count = tMs.length;
  if (throughMs !== null) while (count > 0 && (tMs[count - 1] ?? 0) > throughMs) count -= 1;
  return count;
}

/** Tells whether some series of an answer have no row of their own. */
export function isCapped(model: Model): boolean {
  return model.notes.some((note) => note.code === "capped");
}

/** Returns a model with the series of further parts of the same snapshot. */
export function withPart(model: Model, answer: WireAnswer): Model {
  return { ...model, series: new Map([...model.series, ...modelOf(answer).series]) };
}

function seriesOf(name: WireName, cells: WireColumns, length: number): Series {
  return {
    k: name.k,
    by: Object.entries(name.by),
    slot: name.slot ?? name.k,
    other: name.other ?? false,
    value: column(cells.value, length),
    low: column(cells.low, length),
    high: column(cells.high, length),
    count: column(cells.count, length),
    items: cells.items ?? null,
    state: cells.state,
    compare: (cells.compare ?? []).map((earlier) => earlierOf(earlier, length)),
  };
}

function earlierOf(wire: WireCompare, length: number): Earlier {
  return {
    offset: wire.offset,
    value: column(wire.value, length),
    low: column(wire.low, length),
    high: column(wire.high, length),
    count: column(wire.count, length),
    state: wire.state,
  };
}

/** What came of a delta: a newer model, or why there is none. */
export type Folded =
  | { readonly model: Model; readonly why: null }
  | { readonly model: null; readonly why: "hole" | "epoch" };

/**
 * Folds a delta into a model.
 *
 * A delta that starts after what the model holds is a hole: something was missed, and
 * the client resumes from the revision it has. Another epoch brings a snapshot. A delta
 * that tells nothing new leaves the model as it is.
 *
 * @param countedMs Up to where everything is counted by an earlier revision; null: not known.
 *     A delta does not say it. It is more than what is final tells where an earlier version of
 *     the metric waits longer for late events.
 */
export function folded(model: Model, delta: WireDelta, countedMs: number | null = null): Folded {
  if (delta.epoch !== model.epoch) return { model: null, why: "epoch" };
  if (delta.prev > model.rev) return { model: null, why: "hole" };
  if (delta.rev <= model.rev) return { model, why: null };
  const tMs = timesAfter(model.tMs, delta);
  const plan = planOf(tMs, model.tMs, delta);
  const corrections = correctionsAfter(
    model.corrections,
    delta,
    tMs[0] ?? Number.POSITIVE_INFINITY,
  );
  return {
    why: null,
    model: {
      ...model,
      rev: delta.rev,
      finalToMs: delta.final_to_ms,
      throughMs: latest(model.throughMs, throughOf(delta.final_to_ms, model.metric), countedMs),
      tMs,
      of: delta.of ?? model.of,
      notes: delta.notes ?? model.notes,
      corrections,
      series: seriesAfter(model.series, delta, plan),
    },
  };
}

/** Where each cell of the new columns comes from: the delta, else the model, else nowhere. */
interface Plan {
  readonly tMs: Float64Array;
  readonly fromModel: Int32Array;
  readonly fromDelta: Int32Array;
}

function planOf(tMs: Float64Array, before: Float64Array, delta: WireDelta): Plan {
  return { tMs, fromModel: placesOf(tMs, before), fromDelta: placesOf(tMs, delta.t_ms) };
}

function placesOf(tMs: Float64Array, within: ArrayLike<number>): Int32Array {
  const known = new Map<number, number>();
  for (let at = 0; at < within.length; at += 1) known.set(within[at] as number, at);
  return Int32Array.from(tMs, (t) => known.get(t) ?? -1);
}

function timesAfter(before: Float64Array, delta: WireDelta): Float64Array {
  const first = delta.first_t_ms;
  if (first === null) return new Float64Array();
  const from = first ?? before[0] ?? Number.NEGATIVE_INFINITY;
  const all = new Set<number>([...before, ...delta.t_ms]);
  return Float64Array.from([...all].filter((t) => t >= from)).sort();
}

function seriesAfter(
  before: ReadonlyMap<number, Series>,
  delta: WireDelta,
  plan: Plan,
): ReadonlyMap<number, Series> {
  const changed = new Map(delta.series.map((cells) => [cells.k, cells]));
  const after = new Map<number, Series>();
  const gone = new Set(delta.del);
  for (const [k, series] of before) {
    if (!gone.has(k)) after.set(k, merged(series, changed.get(k), plan, delta.final_to_ms));
  }
  const none: Plan = { ...plan, fromModel: new Int32Array(plan.tMs.length).fill(-1) };
  for (const name of delta.add) {
    if (after.has(name.k)) continue;
    const cells = changed.get(name.k);
    const blank = seriesOf(name, { k: name.k, state: "" }, 0);
    const shape = { ...blank, items: cells?.items ? [] : null, compare: emptied(cells?.compare) };
    after.set(name.k, merged(shape, cells, none, delta.final_to_ms));
  }
  return after;
}

function emptied(compare: readonly WireCompare[] | undefined): readonly Earlier[] {
  const none = { value: [], low: [], high: [], count: [], state: "" };
  return (compare ?? []).map((one) => earlierOf({ offset: one.offset, ...none }, 0));
}

function merged(
  old: Series,
  cells: WireColumns | undefined,
  plan: Plan,
  finalToMs: number | null,
): Series {
  const numbers = (before: Float64Array, now: readonly Cell[] | undefined) =>
    picked(before, cells && now, plan);
  return {
    ...old,
    value: numbers(old.value, cells?.value),
    low: numbers(old.low, cells?.low),
    high: numbers(old.high, cells?.high),
    count: numbers(old.count, cells?.count),
    items: old.items && pickedItems(old.items, cells?.items, plan),
    state: finalized(pickedState(old.state, cells?.state, plan), plan.tMs, finalToMs),
    compare: old.compare.map((earlier, at) => ({
      offset: earlier.offset,
      value: numbers(earlier.value, cells?.compare?.[at]?.value),
      low: numbers(earlier.low, cells?.compare?.[at]?.low),
      high: numbers(earlier.high, cells?.compare?.[at]?.high),
      count: numbers(earlier.count, cells?.compare?.[at]?.count),
      state: pickedState(earlier.state, cells?.compare?.[at]?.state, plan),
    })),
  };
}

function picked(before: Float64Array, now: readonly Cell[] | undefined, plan: Plan): Float64Array {
  const after = new Float64Array(plan.tMs.length);
  for (let at = 0; at < after.length; at += 1) {
    const fresh = now ? (plan.fromDelta[at] ?? -1) : -1;
    const kept = plan.fromModel[at] ?? -1;
    if (fresh >= 0) after[at] = now?.[fresh] ?? Number.NaN;
    else after[at] = kept >= 0 ? (before[kept] ?? Number.NaN) : Number.NaN;
  }
  return after;
}

function pickedItems(
  before: readonly (readonly TopItem[] | null)[],
  now: readonly (readonly TopItem[] | null)[] | undefined,
  plan: Plan,
): readonly (readonly TopItem[] | null)[] {
  return Array.from(plan.tMs, (_, at) => {
    const fresh = now ? (plan.fromDelta[at] ?? -1) : -1;
    if (fresh >= 0) return now?.[fresh] ?? null;
    return before[plan.fromModel[at] ?? -1] ?? null;
  });
}

function pickedState(before: string, now: string | undefined, plan: Plan): string {
  let after = "";
  for (let at = 0; at < plan.tMs.length; at += 1) {
    const fresh = now === undefined ? -1 : (plan.fromDelta[at] ?? -1);
    const letter = fresh >= 0 ? now?.[fresh] : before[plan.fromModel[at] ?? -1];
    after += letter ?? "p";
  }
  return after;
}

/** Returns the states with every `p` up to `finalToMs` turned into `f`. */
export function finalized(state: string, tMs: Float64Array, finalToMs: number | null): string {
  if (finalToMs === null || !state.includes("p")) return state;
  return [...state]
    .map((letter, at) => (letter === "p" && (tMs[at] ?? Number.NaN) <= finalToMs ? "f" : letter))
    .join("");
}

function correctionsAfter(
  before: readonly Correction[],
  delta: WireDelta,
  fromMs: number,
): readonly Correction[] {
  const all = delta.corrections ?? before;
  return all.every((c) => c.t_ms >= fromMs) ? all : all.filter((c) => c.t_ms >= fromMs);
}
