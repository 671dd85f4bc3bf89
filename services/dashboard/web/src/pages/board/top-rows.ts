/** The series of a metric in the newest window that is over, as a table shows them. Pure. */
import { nameOf } from "../../charts/plot";
import { withinText } from "../../lib/ends";
import { exact, isSketched, short, withUnit } from "../../lib/numbers";
import { easiestOf, whyNone } from "../../lib/unknown";
import { isCapped, type Model, overIn } from "../../live/model";
import { words } from "../../messages.en";

export interface TopRow {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  /** All digits of the value. */
  readonly exact: string;
  readonly within: string;
  readonly events: string;
  /** Length of its bar, as a share of the largest; 0 for what is in no series of its own. */
  readonly share: number;
}

export interface TopTable {
  /** The largest first, what is in no series of its own last. */
  readonly rows: readonly TopRow[];
  /** Whether the ends have a column: not where every number is exact, and always will be. */
  readonly estimated: boolean;
}

/** Returns why the table of an aggregate is empty: in short, and more of it. */
export function emptyTop(
  model: Model,
  aggregate: string,
  length: string,
): readonly [title: string, hint: string] {
  const said = words.chart;
  const aggregates = [aggregate];
  const why = whyNone([...model.series.values()], { aggregates, capped: isCapped(model) });
  if (why !== "few") return said.why(length)[why];
  return [said.few(aggregate), said.fewHint(aggregate, easiestOf(aggregates)?.least ?? 0)];
}

/**
 * Returns the window of all rows: the newest that is over and is counted; if none is, the newest.
 *
 * Of the open one each series has another part, and values of two windows are in no order. One in
 * which nothing came is counted: what came before it is no news, and those that were the largest
 * then are not those that are asked for.
 */
function windowOf({ tMs, throughMs, series }: Model): number {
  const isTold = (at: number) => [...series.values()].some((one) => !Number.isNaN(one.count[at]));
  const newest = (from: number) => {
    let at = from - 1;
    while (at >= 0 && !isTold(at)) at -= 1;
    return at;
  };
  const over = newest(overIn(tMs, throughMs));
  return over < 0 ? newest(tMs.length) : over;
}

/** Returns the table of an aggregate; empty where no series has a value. */
export function topTableOf(model: Model, aggregate: string, unit: string): TopTable {
  const at = windowOf(model);
  const found = [...model.series.values()]
    .map((series) => {
      const value = series.value[at] ?? Number.NaN;
      const [low = value, high = value] = [series.low[at], series.high[at]];
      return { series, value, low, high, count: series.count[at] };
    })
    .filter(({ value }) => !Number.isNaN(value))
    .sort((a, b) => Number(a.series.other) - Number(b.series.other) || b.value - a.value);
  const most = Math.max(...found.map(({ series, value }) => (series.other ? 0 : value)), 0);
  return {
    rows: found.map(({ series, value, low, high, count }) => ({
      id: String(series.k),
      name: nameOf(series, aggregate),
      value: withUnit(value, unit),
      exact: exact(value),
      within: withinText(low, high, unit),
      events: short(count),
      share: series.other || most === 0 ? 0 : value / most,
    })),
    // Of few values a percentile is exact, and the next window has more of them.
    estimated: isSketched(aggregate) || found.some(({ low, high }) => low !== high),
  };
}
