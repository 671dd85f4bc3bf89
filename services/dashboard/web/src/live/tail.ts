/**
 * The live tail as a fold: newest first, bounded, each event with what became of it.
 *
 * A fate may come before or after its event is on screen; both orders end the same.
 */
import type { Fate, ServerFrame, TailEvent } from "./wire";

export const MAX_ROWS = 200;
const MAX_WAITING = 500;
const RATE_SPAN_MS = 5_000;

/** After all of its time is counted, how much longer the fate of an event may be under way. */
export const FATE_MS = 10_000;

/** An event on screen; `fate` is null as long as it is not told. */
export interface TailRow {
  readonly at: string;
  readonly event: TailEvent;
  readonly fate: Fate | null;
  /** Whether the server that was to tell its fate has gone, or forgotten it. */
  readonly lost: boolean;
}

interface Burst {
  readonly atMs: number;
  readonly shown: number;
  readonly of: number;
}

export interface Tail {
  readonly rows: readonly TailRow[];
  readonly waiting: ReadonlyMap<string, Fate>;
  readonly bursts: readonly Burst[];
  /** Events shown since the tail was opened. */
  readonly total: number;
}

export const EMPTY_TAIL: Tail = { rows: [], waiting: new Map(), bursts: [], total: 0 };

type TailFrame = Extract<ServerFrame, { readonly op: "tail" }>;

const placeOf = (at: readonly [number, number]) => `${at[0]}:${at[1]}`;

/** Returns the tail after a frame. */
export function tailAfter(tail: Tail, frame: TailFrame, nowMs: number): Tail {
  const fates = new Map(tail.waiting);
  for (const fate of frame.fates ?? []) if (fate.at) fates.set(placeOf(fate.at), fate);
  const known = new Set(tail.rows.map((row) => row.at));
  const fresh = frame.events
    .map((event): TailRow => ({ at: placeOf(event.at), event, fate: null, lost: false }))
    .filter((row) => !known.has(row.at))
    .reverse();
  const rows = [...fresh, ...tail.rows].slice(0, MAX_ROWS).map((row) => settled(row, fates));
  const burst = { atMs: nowMs, shown: frame.shown, of: frame.of };
  return {
    rows,
    waiting: new Map([...fates].slice(-MAX_WAITING)),
    bursts: [...tail.bursts, burst].filter((b) => b.atMs > nowMs - RATE_SPAN_MS),
    total: tail.total + fresh.length,
  };
}

function settled(row: TailRow, fates: Map<string, Fate>): TailRow {
  const fate = fates.get(row.at);
  if (fate === undefined) return row;
  fates.delete(row.at);
  return { ...row, fate };
}

/** Returns the tail after a subscription began anew: what became of its events is told to nobody. */
export function tailForgotten(tail: Tail): Tail {
  return { ...tail, rows: tail.rows.map((row) => ({ ...row, lost: row.fate === null })) };
}

/**
 * Returns what became of an event: `counting` while it may still be told, else `unknown`.
 *
 * While counting is behind an event waits for as long as that; so it is not its age that counts,
 * but that counting has passed it by.
 */
export function fateOf({ event, fate, lost }: TailRow, throughMs: number | null): string {
  if (fate !== null) return fate.fate;
  const isPassed = throughMs !== null && throughMs > event.received_ms + FATE_MS;
  return lost || isPassed ? "unknown" : "counting";
}

/** Returns a tail that stands still, with what has become known of its events since. */
export function withFates(shown: Tail, newest: Tail): Tail {
  const found = new Map(newest.rows.map((row) => [row.at, row]));
  const rows = shown.rows.map((row) => {
    const { fate = null, lost = row.lost } = found.get(row.at) ?? {};
    return { ...row, fate: row.fate ?? fate, lost };
  });
  return { ...shown, rows };
}

/**
 * Returns the tail to show: the newest, or while it is held what is shown already.
 *
 * A tail whose total is less than before has begun anew, through another filter: nothing of
 * the one before may stay.
 */
export function shownTail(shown: Tail, newest: Tail, held: boolean): Tail {
  return held && newest.total >= shown.total ? withFates(shown, newest) : newest;
}

/**
 * Returns how many events a second are shown, of how many accepted, over the last seconds.
 *
 * A filtered tail is told only of what passes: what it is a part of comes from the whole one,
 * over the same span.
 */
export function tailRate(tail: Tail, nowMs: number, all = tail): { shown: number; of: number } {
  const recent = (of: Tail) => of.bursts.filter((b) => b.atMs > nowMs - RATE_SPAN_MS);
  const [own, whole] = [recent(tail), recent(all)];
  const firstMs = Math.min(...[...own, ...whole].map((b) => b.atMs));
  const spanS = Math.max(1, Math.min(RATE_SPAN_MS, nowMs - firstMs) / 1_000);
  const shown = Math.round(own.reduce((sum, b) => sum + b.shown, 0) / spanS);
  const of = Math.round(whole.reduce((sum, b) => sum + b.of, 0) / spanS);
  return { shown, of: Math.max(shown, of) };
}

/** Returns an event as JSON to read. Data that would not be the same again stays the text that came. */
export function wholeOf({ id, type, data, ...others }: TailEvent): string {
  return JSON.stringify({ id, type, data: parsed(data), ...others }, null, 2);
}

function parsed(data: string): unknown {
  const bare = (text: string) => text.replace(/\s+/g, "");
  try {
    const value: unknown = JSON.parse(data);
    // A number beyond 2^53 would be shown as another one.
    return bare(JSON.stringify(value)) === bare(data) ? value : data;
  } catch {
    return data;
  }
}
