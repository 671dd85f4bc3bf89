/** The series of a metric with their newest values, and what can be taken away of them. */
import type { MetricDetail } from "../../api/shapes";
import { LineKey } from "../../charts/legend";
import { type Line, lastCounted, lastKnown, type Plot } from "../../charts/plot";
import { csvRows } from "../../charts/table";
import { Copy } from "../../components/copy";
import { VirtualTable } from "../../components/virtual-table";
import { csv } from "../../lib/csv";
import { bounds, exact, integer, NONE, withUnit } from "../../lib/numbers";
import { words } from "../../messages.en";
import { metricWords } from "../../messages.metrics.en";

interface SeriesPanelProps {
  readonly metric: MetricDetail;
  readonly aggregate: string;
  readonly plot: Plot | null;
  readonly query: Readonly<Record<string, unknown>>;
}

/** The panel under the chart. */
export function SeriesPanel({ metric, aggregate, plot, query }: SeriesPanelProps) {
  const unit = plot?.unit ?? "";
  const lines = plot?.lines.filter((line) => !line.ghost) ?? [];
  const said = metricWords.metric;
  return (
    <section class="panel size-L">
      <header>
        <h2>{said.series}</h2>
        <span class="sub">{said.ofSeries(plot?.shown ?? 0, plot?.of ?? 0)}</span>
        <span class="grow" />
        <button
          type="button"
          class="btn sm quiet"
          disabled={plot === null}
          onClick={() => plot && download(`${metric.name}-${aggregate}.csv`, csv(csvRows(plot)))}
        >
          {said.csv}
        </button>
        <Copy class="quiet" text={curlOf(query)} label={said.copyCurl} />
      </header>
      <div class="body flush">
        <VirtualTable
          label={said.series}
          tall
          rows={lines}
          head={
            <tr>
              <th class="key">
                <span class="sr">{said.line}</span>
              </th>
              <th>{said.name}</th>
              <th class="num">{said.now}</th>
              <th class="num">{said.within}</th>
              <th class="num">{said.events}</th>
            </tr>
          }
          row={(line) => <SeriesRow key={line.id} line={line} unit={unit} />}
        />
      </div>
    </section>
  );
}

function SeriesRow({ line, unit }: { line: Line; unit: string }) {
  const known = lastKnown(line);
  const at = known < 0 ? lastCounted(line) : known;
  const value = known < 0 ? null : (line.value[known] ?? null);
  return (
    <tr data-testid="series-row">
      <td class="key">
        <LineKey stroke={line.stroke} width={18} />
      </td>
      <td>{line.name}</td>
      <td class="num b" title={exact(value)}>
        {withUnit(value, unit)}
      </td>
      <td class="num t3">{within(line, known, unit)}</td>
      <td class="num">{at < 0 ? NONE : integer(line.count[at])}</td>
    </tr>
  );
}

function within(line: Line, at: number, unit: string): string {
  if (at < 0) return NONE;
  if (!line.banded) return words.tile.exact;
  return bounds(line.low[at] ?? Number.NaN, line.high[at] ?? Number.NaN, unit);
}

/** Returns the query as a command; the key is the reader's own. */
export function curlOf(query: Readonly<Record<string, unknown>>): string {
  const body = JSON.stringify(query).replaceAll("'", "'\\''");
  return [
    `curl -X POST ${location.origin}/api/v1/query`,
    `-H "Authorization: Bearer $WEIR_API_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(" \\\n  ");
}

function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
