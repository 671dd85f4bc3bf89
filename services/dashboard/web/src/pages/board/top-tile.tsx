/** The largest series of a metric in one window, as a table with bars. */
import type { Metric, Tile } from "../../api/shapes";
import { nameOf } from "../../charts/plot";
import { Empty, Refused } from "../../components/notes";
import { exact, short, unitOf, withUnit } from "../../lib/numbers";
import { aggregatesOf, askingOf, queryOf, windowLength } from "../../lib/query";
import { lostMs } from "../../lib/shown";
import { lengthOf, lengthText } from "../../lib/time";
import { range, to } from "../../lib/view";
import type { Model } from "../../live/model";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";

const ROWS = 8;
const MINUTE_MS = 60_000;

interface TopRow {
  readonly id: string;
  readonly name: string;
  readonly other: boolean;
  readonly value: number;
  readonly count: number;
}

/** One table. */
export function TopTile({ tile, metric }: { tile: Tile; metric: Metric | undefined }) {
  const [element, visible] = useVisible<HTMLElement>();
  const aggregate = aggregatesOf(tile)[0] ?? "count";
  // Only the newest window is shown: two steps are enough to have it.
  const stepMs = Math.max(MINUTE_MS, metric?.resolution_ms ?? MINUTE_MS);
  const length = windowLength(tile) ?? range.value.value;
  const asking = { ...askingOf({ ...tile, window: { length } }, aggregate), top: ROWS };
  const query = queryOf(asking, lengthText(2 * stepMs), lengthText(stepMs));
  const { feeds, old } = useQueries([query], visible && metric !== undefined);
  const model = feeds[0]?.model ?? null;
  const problem = feeds[0]?.problem;
  const rows = model ? rowsOf(model, aggregate) : [];
  const most = Math.max(...rows.filter((row) => !row.other).map((row) => row.value), 0);
  const unit = unitOf(aggregate, model?.metric.unit ?? null);
  const dimmed = old || lostMs.value !== null;
  return (
    <section
      ref={element}
      class={`panel size-${tile.size ?? "M"}${dimmed ? " dimmed" : ""}`}
      data-testid="top-tile"
      data-metric={tile.metric}
    >
      <header>
        <h2>
          <a class="plain" href={to(`/m/${tile.metric}`)}>
            {tile.title || tile.metric}
          </a>
        </h2>
        <span class="sub">
          {aggregate} ·{" "}
          {words.chart.windowOf(lengthText(lengthOf(length) ?? 0).replace(/(\d+)/, "$1 "))}
        </span>
      </header>
      {problem && (
        <div class="body">
          <Refused problem={problem} />
        </div>
      )}
      {model && rows.length === 0 && (
        <Empty title={words.chart.empty(length)}>
          <span class="s">{words.chart.emptyHint}</span>
        </Empty>
      )}
      {rows.length > 0 && (
        <div class="body flush scroll">
          <table class="t">
            <thead>
              <tr>
                <th>{(tile.by ?? []).join(" · ")}</th>
                <th class="num">{aggregate}</th>
                {aggregate !== "count" && <th class="num">{words.board.events}</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td class="barcell">
                    {!row.other && most > 0 && (
                      <i style={{ width: `${(row.value / most) * 96}%` }} />
                    )}
                    <span class="mono" title={row.name}>
                      {row.name}
                    </span>
                  </td>
                  <td class="num b" title={exact(row.value)}>
                    {withUnit(row.value, unit)}
                  </td>
                  {aggregate !== "count" && <td class="num t2">{short(row.count)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function rowsOf(model: Model, aggregate: string): readonly TopRow[] {
  const rows = [...model.series.values()].map((series) => {
    let at = model.tMs.length - 1;
    while (at > 0 && Number.isNaN(series.value[at])) at -= 1;
    return {
      id: String(series.k),
      name: nameOf(series, aggregate),
      other: series.other,
      value: series.value[at] ?? Number.NaN,
      count: series.count[at] ?? Number.NaN,
    };
  });
  return rows
    .filter((row) => !Number.isNaN(row.value))
    .sort((a, b) => Number(a.other) - Number(b.other) || b.value - a.value);
}
