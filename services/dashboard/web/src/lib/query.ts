/** From what a page or a tile asks to the query of the API. Pure. */
import type { Tile } from "../api/shapes";
import { lengthText } from "./time";

/** A condition on a declared dimension. */
export type Condition = readonly [dimension: string, op: string, value: unknown];

/** What a chart asks, without its range. */
export interface Asking {
  readonly metric: string;
  readonly aggregate: string;
  readonly by?: readonly string[];
  readonly where?: readonly Condition[];
  readonly window?: { readonly kind: string; readonly length?: string } | null;
  readonly top?: number;
}

const TOP = 8;

/** Returns the query of a line over a range. */
export function queryOf(asking: Asking, range: string, step?: string): Record<string, unknown> {
  const { metric, aggregate, by = [], where = [], window } = asking;
  return {
    metric,
    aggregate,
    ...(by.length > 0 && { by, limit: { top: asking.top ?? TOP, other: true } }),
    ...(where.length > 0 && { where }),
    ...(window && { window }),
    range: { last: range },
    ...(step && { step }),
  };
}

/** Returns which aggregates a tile draws. */
export function aggregatesOf(tile: Tile): readonly string[] {
  if (tile.aggregates && tile.aggregates.length > 0) return tile.aggregates;
  return tile.aggregate ? [tile.aggregate] : [];
}

/** Returns the length of a tile's window as text, or null where it has none. */
export function windowLength(tile: Tile): string | null {
  const { window } = tile;
  const length: unknown = typeof window === "object" && window !== null ? window.length : window;
  if (typeof length === "number") return lengthText(length);
  return typeof length === "string" ? length : null;
}

/** Returns what a tile asks for one of its aggregates; a number asks for the newest such window. */
export function askingOf(tile: Tile, aggregate: string): Asking {
  const length = windowLength(tile);
  const given = typeof tile.window === "object" && tile.window !== null ? tile.window.kind : null;
  const kind = tile.type === "chart" ? (given ?? "tumbling") : "sliding";
  return {
    metric: tile.metric ?? "",
    aggregate,
    by: tile.by ?? [],
    where: (tile.where ?? []).map(conditionOf).filter((c) => c !== null),
    window: length === null ? null : { kind, length },
  };
}

/** Returns a condition as queries write it; definitions write it in either of two ways. */
export function conditionOf(given: unknown): Condition | null {
  if (Array.isArray(given) && given.length === 3)
    return [String(given[0]), String(given[1]), given[2]];
  if (typeof given !== "object" || given === null || !("dimension" in given)) return null;
  const { dimension, op, value } = given as { dimension: unknown; op?: unknown; value?: unknown };
  return [String(dimension), String(op ?? "="), value];
}
