/** What a metric's page says of late events. Pure. */
import type { Correction } from "../../api/shapes";
import { lateWords } from "../../messages.late.en";
import { metricWords } from "../../messages.metrics.en";

/** Returns what a corrected series is called: its dimensions' values. */
export function nameOf({ by, other }: Pick<Correction, "by" | "other">): string {
  if (other) return lateWords.other;
  const values = Object.values(by).map((value) => value ?? "null");
  return values.length > 0 ? values.join(" · ") : lateWords.all;
}

/** Returns who sent late events into a pane, or may have. */
export function sourcesOf(
  one: Pick<Correction, "sources" | "sources_exact" | "sources_known">,
): string {
  const { sources, sources_exact, sources_known } = one;
  if (sources.length === 0) return lateWords.unknown;
  const names = sources.map(({ source }) => source).join(", ");
  const isCertain = sources_exact || (sources_known && sources.length === 1);
  return isCertain ? names : lateWords.possibly(names);
}

/** Returns how often texts of late events came before and now; a release before tells of none. */
export function textsOf({ texts }: Partial<Pick<Correction, "texts">>): Correction["texts"] {
  return (texts ?? []).map((one) => ({
    ...one,
    text: one.text === "" ? metricWords.metric.top.empty : one.text,
  }));
}

type RowFigures = NonNullable<Correction["now"]>;

/** A figure and between what it lies; of what is exact all three are one. */
export interface Figure {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Returns the figures that are told before and after; how many events first, and no lists. */
export function figureNames(aggregates: readonly string[]): readonly string[] {
  const names = aggregates.map(shortName).filter((name) => name !== "rate" && name !== "top");
  return [...new Set(["count", ...names])];
}

/** Returns whether a metric has a list of frequent texts: then it is told of texts as well. */
export function hasTexts(aggregates: readonly string[]): boolean {
  return aggregates.some((name) => shortName(name) === "top");
}

/** Returns a figure of a row; null if there is none. */
export function figureOf(row: RowFigures | null, name: string): Figure | null {
  if (row === null) return null;
  const value = exactOf(row, name);
  if (value !== null) return { value, low: value, high: value };
  return row.estimates[name] ?? null;
}

function exactOf(row: RowFigures, name: string): number | null {
  switch (name) {
    case "avg":
      return row.sum === null || row.count === 0 ? null : row.sum / row.count;
    case "count":
    case "sum":
    case "min":
    case "max":
    case "stddev":
    case "last":
      return row[name];
    default:
      return null;
  }
}

/** Returns what a declared aggregate is asked by: of `distinct(subject)` that is `distinct`. */
function shortName(declared: string): string {
  const percentile = /^p(\d+(?:\.\d+)?)$/.exec(declared);
  if (percentile) return `p${Number(percentile[1])}`;
  return declared.replace(/\(.*$/, "");
}
