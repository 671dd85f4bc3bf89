/** The most frequent texts of a metric over one window, each with the ends of its count. */
import { useMemo } from "preact/hooks";
import type { MetricDetail } from "../../api/shapes";
import { Empty, Refused } from "../../components/notes";
import { integer } from "../../lib/numbers";
import { queryOf } from "../../lib/query";
import { lostMs } from "../../lib/shown";
import { lengthOf, lengthText, lengthWords } from "../../lib/time";
import { range } from "../../lib/view";
import { useQueries } from "../../live/use";
import { words } from "../../messages.en";
import { metricWords } from "../../messages.metrics.en";
import type { Choice } from "./choice";
import { type TopList, type TopRow, topListsOf } from "./top-list";

const GROUPS = 6;
const MINUTE_MS = 60_000;

interface TopTextsProps {
  readonly metric: MetricDetail;
  readonly chosen: Choice;
}

/** One table for each group, in place of the chart. */
export default function TopTexts({ metric, chosen }: TopTextsProps) {
  const { aggregate, by } = chosen;
  const length = chosen.window ?? range.value.value;
  // Only the newest window is shown: two steps are enough to have it.
  const stepMs = Math.max(MINUTE_MS, metric.resolution_ms);
  const query = useMemo(
    () =>
      queryOf(
        { metric: metric.name, aggregate, by, window: { kind: "sliding", length }, top: GROUPS },
        lengthText(2 * stepMs),
        lengthText(stepMs),
      ),
    [metric.name, aggregate, by.join(), length, stepMs],
  );
  const { feeds, old } = useQueries([query], true);
  const model = feeds[0]?.model ?? null;
  const problem = feeds[0]?.problem;
  const lists = model ? topListsOf(model, aggregate) : [];
  const empty = lists.every(({ rows }) => rows?.length === 0);
  const ago = words.tile.last(lengthWords(lengthOf(length) ?? 0));
  const why = lists.length > 0 ? metricWords.metric.top.none : words.chart.why(ago).nothing[0];
  const dimmed = old || lostMs.value !== null;
  return (
    <div class={`grid${dimmed ? " dimmed" : ""}`}>
      {problem && <Refused problem={problem} />}
      {model && empty && <Empty title={why} />}
      {!empty &&
        lists.map((list) => <TopPanel key={list.id} list={list} length={lengthOf(length) ?? 0} />)}
    </div>
  );
}

function TopPanel({ list, length }: { list: TopList; length: number }) {
  const said = metricWords.metric.top;
  return (
    <section class="panel size-M" data-testid="top-texts">
      <header>
        <h2>{list.name}</h2>
        <span class="sub">{said.over(lengthWords(length), integer(list.events))}</span>
      </header>
      {list.rows === null ? (
        <Empty title={said.unknown} />
      ) : (
        <div class="body flush scroll">
          <table class="t">
            <thead>
              <tr>
                <th>{said.text}</th>
                <th class="num">{said.count}</th>
                <th class="num">{said.within}</th>
              </tr>
            </thead>
            <tbody>
              {list.rows.map((row) => (
                <TopLine key={row.id} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function TopLine({ row }: { row: TopRow }) {
  return (
    <tr data-testid="top-text">
      <td class="barcell">
        {row.share > 0 && <i style={{ width: `${row.share * 96}%` }} />}
        <span class={row.other ? "t3" : "mono"} title={row.text}>
          {row.text}
        </span>
      </td>
      <td class="num b">{row.count}</td>
      <td class="num t3">{row.within}</td>
    </tr>
  );
}
