/** A chart as a table: value, bounds, count and state of every window, newest first. */
import { useMemo } from "preact/hooks";
import { VirtualTable } from "../components/virtual-table";
import { withinText } from "../lib/ends";
import { exact, integer, NONE, withUnit } from "../lib/numbers";
import { clock, type Zone } from "../lib/time";
import { leastFor } from "../lib/unknown";
import { words } from "../messages.en";
import { LineKey } from "./legend";
import type { Line, Plot } from "./plot";

interface Row {
  readonly tMs: number;
  readonly line: Line;
  readonly at: number;
}

interface ChartTableProps {
  readonly plot: Plot;
  readonly unit: string;
  readonly zone: Zone;
  readonly title: string;
}

/** The table view of a chart. */
export function ChartTable({ plot, unit, zone, title }: ChartTableProps) {
  const rows = useMemo(() => rowsOf(plot), [plot]);
  const head = words.chart.table;
  return (
    <VirtualTable
      label={title}
      rows={rows}
      head={
        <tr>
          <th>{head.time}</th>
          <th>{head.series}</th>
          <th class="num">{head.value}</th>
          <th class="num">{head.within}</th>
          <th class="num">{head.count}</th>
          <th>{head.state}</th>
        </tr>
      }
      row={({ tMs, line, at }) => (
        <tr key={`${tMs} ${line.id}`}>
          <td>{clock(tMs, zone, "second")}</td>
          <td>
            <LineKey stroke={line.stroke} /> {line.name}
          </td>
          <td class="num b" title={exact(line.value[at])}>
            {valueText(line, at, unit)}
          </td>
          <td class="num t3">{within(line, at, unit)}</td>
          <td class="num">{integer(line.count[at])}</td>
          <td>
            <span class={line.state[at] === "p" ? "tag-prov" : "t2"}>
              {words.chart.states[line.state[at] ?? "n"]}
            </span>
          </td>
        </tr>
      )}
    />
  );
}

function valueText(line: Line, at: number, unit: string): string {
  const value = line.value[at];
  const counted = line.count[at] ?? Number.NaN;
  const isFew = counted > 0 && counted < (leastFor(line.aggregate) ?? 0);
  if (Number.isNaN(value) && isFew && line.state[at] !== "p") return words.tile.few;
  return withUnit(value, unit);
}

function within(line: Line, at: number, unit: string): string {
  const { low, high, value } = { low: line.low[at], high: line.high[at], value: line.value[at] };
  if (value === undefined || Number.isNaN(value)) return NONE;
  return withinText(low ?? value, high ?? value, unit);
}

function rowsOf(plot: Plot): readonly Row[] {
  const rows: Row[] = [];
  const lines = plot.lines.filter((line) => !line.ghost);
  for (let at = plot.tMs.length - 1; at >= 0; at -= 1) {
    for (const line of lines) rows.push({ tMs: plot.tMs[at] ?? 0, line, at });
  }
  return rows;
}

/** Returns a plot as rows for CSV, with a header. */
export function csvRows(plot: Plot): (string | number | null)[][] {
  const head = words.chart.table;
  const rows = rowsOf(plot).map(({ tMs, line, at }) => [
    new Date(tMs).toISOString(),
    line.name,
    line.value[at] ?? null,
    line.low[at] ?? null,
    line.high[at] ?? null,
    line.count[at] ?? null,
    words.chart.states[line.state[at] ?? "n"] ?? "",
  ]);
  return [[head.time, head.series, head.value, "low", "high", head.count, head.state], ...rows];
}
