/** The largest series of a metric in one window, as a table with bars. */
import type { Metric, Tile } from "../../api/shapes";
import { Empty, Refused } from "../../components/notes";
import { unitOf } from "../../lib/numbers";
import { aggregatesOf, askingOf, queryOf, windowLength } from "../../lib/query";
import { lostMs, staleMs } from "../../lib/shown";
import { lengthOf, lengthText } from "../../lib/time";
import { range, to } from "../../lib/view";
import type { Model } from "../../live/model";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";
import { emptyTop, type TopTable, topTableOf } from "./top-rows";

const ROWS = 8;
const MINUTE_MS = 60_000;

// As many windows as are asked for: when counting lags, the newest that is over is further back.
const BACK = 15;

interface TopTileProps {
  readonly tile: Tile;
  /** All metrics; null until they are known. */
  readonly metrics: readonly Metric[] | null;
}

/** One table. */
export function TopTile({ tile, metrics }: TopTileProps) {
  const [element, visible] = useVisible<HTMLElement>();
  const aggregate = aggregatesOf(tile)[0] ?? "count";
  const resolutionMs = metrics?.find((one) => one.name === tile.metric)?.resolution_ms;
  const stepMs = Math.max(MINUTE_MS, resolutionMs ?? MINUTE_MS);
  const length = windowLength(tile) ?? range.value.value;
  const asking = { ...askingOf({ ...tile, window: { length } }, aggregate), top: ROWS };
  const query = queryOf(asking, lengthText(BACK * stepMs), lengthText(stepMs));
  const { feeds, old } = useQueries([query], visible && metrics !== null);
  const model = feeds[0]?.model ?? null;
  const problem = feeds[0]?.problem;
  const table = model && topTableOf(model, aggregate, unitOf(aggregate, model.metric.unit));
  const dimmed = old || lostMs.value !== null || staleMs.value !== null;
  return (
    <section
      ref={element}
      class={`panel listing size-${tile.size ?? "M"}${dimmed ? " dimmed" : ""}`}
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
      {model && table?.rows.length === 0 && (
        <Nothing model={model} aggregate={aggregate} length={length} />
      )}
      {table && table.rows.length > 0 && (
        <TopRows table={table} aggregate={aggregate} by={tile.by ?? []} />
      )}
    </section>
  );
}

interface NothingProps {
  readonly model: Model;
  readonly aggregate: string;
  readonly length: string;
}

function Nothing({ model, aggregate, length }: NothingProps) {
  const [title, hint] = emptyTop(model, aggregate, length);
  return (
    <Empty title={title}>
      <span class="s">{hint}</span>
    </Empty>
  );
}

interface TopRowsProps {
  readonly table: TopTable;
  readonly aggregate: string;
  readonly by: readonly string[];
}

function TopRows({ table, aggregate, by }: TopRowsProps) {
  const counts = aggregate === "count";
  return (
    <div class="body flush scroll">
      <table class="t">
        <thead>
          <tr>
            <th>{by.join(" · ")}</th>
            <th class="num">{aggregate}</th>
            {table.estimated && <th class="num">{words.chart.table.within}</th>}
            {!counts && <th class="num">{words.board.events}</th>}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.id} data-testid="top-row">
              <td class="barcell">
                {row.share > 0 && <i style={{ width: `${row.share * 96}%` }} />}
                <span class="mono" title={row.name}>
                  {row.name}
                </span>
              </td>
              <td class="num b" title={row.exact}>
                {row.value}
              </td>
              {table.estimated && <td class="num t3">{row.within}</td>}
              {!counts && <td class="num t2">{row.events}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
