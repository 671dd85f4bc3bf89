/** What a number tile asks: its number, and the line beside it. Pure. */
import type { Tile } from "../api/shapes";
import { type Asking, askingOf, queryOf, windowLength } from "./query";
import { lengthOf, lengthText } from "./time";

const POINTS = 400;
const USUAL_MS = 300_000;
const LEAST_BACK_MS = 900_000;
const SECOND_MS = 1_000;
/** Lengths that longer panes divide as well: the coarser the panes, the fewer are read. */
const ROUND_S = [
  ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800],
  ...[3_600, 7_200, 10_800, 21_600, 43_200, 86_400],
];

/** Returns the first round length of whole panes that is long enough, and fits; else null. */
function roundStep(
  resolutionMs: number,
  leastMs: number,
  fits: (stepMs: number) => boolean,
): number | null {
  const found = ROUND_S.find((s) => {
    const ms = s * SECOND_MS;
    return ms >= leastMs && ms % resolutionMs === 0 && fits(ms);
  });
  return found === undefined ? null : found * SECOND_MS;
}

/** The queries of one tile; they are the same where one says both. */
export interface NumberAsked {
  readonly asking: Asking;
  readonly windowMs: number;
  /** How far back the newest window that is known may lie. */
  readonly backMs: number;
  readonly number: Readonly<Record<string, unknown>>;
  readonly line: Readonly<Record<string, unknown>>;
}

/** Returns the step of a tile's line: as fine as its panes and the room for it allow. */
export function lineStep(resolutionMs: number, rangeMs: number): number {
  const round = roundStep(resolutionMs, rangeMs / POINTS, () => true);
  return round ?? Math.max(1, Math.ceil(rangeMs / POINTS / resolutionMs)) * resolutionMs;
}

/**
 * Returns the step of the number: a small part of its window, whatever range is looked at.
 *
 * Whole steps make up a window, so that the window before it is one of the answer's too.
 */
export function numberStep(resolutionMs: number, windowMs: number): number {
  const round = roundStep(resolutionMs, windowMs / POINTS, (ms) => windowMs % ms === 0);
  if (round !== null) return round;
  const panes = windowMs / resolutionMs;
  let step = Math.max(1, Math.ceil(panes / POINTS));
  while (step < panes && panes % step !== 0) step += 1;
  return step * resolutionMs;
}

/** Returns what a tile asks over a range; a number without a window is of five minutes. */
export function numberAsked(
  tile: Tile,
  aggregate: string,
  resolutionMs: number,
  range: { readonly value: string; readonly ms: number },
): NumberAsked {
  const given = lengthOf(windowLength(tile) ?? "");
  const windowMs = given ?? Math.ceil(USUAL_MS / resolutionMs) * resolutionMs;
  const asking = askingOf({ ...tile, window: { length: windowMs } }, aggregate);
  const backMs = Math.max(LEAST_BACK_MS, 2 * windowMs);
  const stepMs = numberStep(resolutionMs, windowMs);
  const drawnMs = lineStep(resolutionMs, range.ms);
  const line = queryOf(asking, range.value, lengthText(drawnMs));
  const isSame = drawnMs === stepMs && range.ms >= backMs;
  const number = isSame ? line : queryOf(asking, lengthText(backMs), lengthText(stepMs));
  return { asking, windowMs, backMs, number, line };
}
