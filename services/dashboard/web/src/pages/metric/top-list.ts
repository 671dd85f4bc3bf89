/** The most frequent texts of a metric, as a table shows them. Pure. */
import { nameOf } from "../../charts/plot";
import { integer, NONE, short } from "../../lib/numbers";
import type { Model, Series } from "../../live/model";
import type { TopItem } from "../../live/wire";
import { words } from "../../messages.en";
import { metricWords } from "../../messages.metrics.en";

export interface TopRow {
  readonly id: string;
  readonly text: string;
  readonly count: string;
  readonly within: string;
  /** Length of its bar, as a share of the largest; 0 for the texts that are not listed. */
  readonly share: number;
  readonly other: boolean;
}

/** The list of one series in the newest window that is known. */
export interface TopList {
  readonly id: string;
  readonly name: string;
  readonly events: number | null;
  /** Null where nobody knows. */
  readonly rows: readonly TopRow[] | null;
}

/** Returns a list for each series, that of the most events first, as the server sorts them. */
export function topListsOf(model: Model, aggregate: string): readonly TopList[] {
  return [...model.series.values()].map((series) => {
    const at = newestOf(series);
    const items = at < 0 ? null : (series.items?.[at] ?? null);
    const events = series.count[at];
    return {
      id: String(series.k),
      name: nameOf(series, aggregate),
      events: events === undefined || Number.isNaN(events) ? null : events,
      rows: items?.map((item, nth) => rowOf(item, nth, items[0]?.[1] ?? 0)) ?? null,
    };
  });
}

/** The window of the present may not be known yet: the one before it is shown until then. */
function newestOf(series: Series): number {
  let at = series.count.length - 1;
  while (at >= 0 && Number.isNaN(series.count[at])) at -= 1;
  return at;
}

function rowOf([text, count, low, high]: TopItem, nth: number, most: number): TopRow {
  const said = metricWords.metric.top;
  if (text === null || count === null) {
    const within = said.upTo(integer(high));
    return { id: "other", text: said.others, count: NONE, within, share: 0, other: true };
  }
  return {
    id: String(nth),
    text: text === "" ? said.empty : text,
    count: short(count),
    within: low === high ? words.tile.exact : `${integer(low)} – ${integer(high)}`,
    share: most > 0 ? count / most : 0,
    other: false,
  };
}
