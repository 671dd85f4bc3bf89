/** The metric over the last 24 hours with the rule's limits, which are moved there. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Metric } from "../../api/shapes";
import { Chart } from "../../charts/chart";
import { emptinessOf } from "../../charts/empty";
import { LineKey } from "../../charts/legend";
import { usePlot } from "../../charts/live-chart";
import type { Plot } from "../../charts/plot";
import { Empty, Refused } from "../../components/notes";
import { type Frame, numberOf, sensibleLimit, stepOf } from "../../lib/limit";
import { startsAtZero, unitOf, withUnit } from "../../lib/numbers";
import { askingOf, queryOf } from "../../lib/query";
import type { RuleForm } from "../../lib/rule-text";
import { lostMs, staleMs, staleText } from "../../lib/shown";
import { lengthOf, lengthText } from "../../lib/time";
import { asTable, zone } from "../../lib/view";
import { nowMs } from "../../live/live";
import { useQueries } from "../../live/use";
import { ruleWords as words } from "../../messages.rules.en";
import { type Handle, Handles } from "./handles";
import { DAY_MS } from "./use-backtest";

const CHART_PX = 320;
const POINTS = 720;
const MOST_POINTS = 10_000;
const MOST_LINES = 8;

interface LimitChartProps {
  readonly metric: Metric;
  readonly form: RuleForm;
  /** The filter as the check reads it. */
  readonly where: readonly unknown[];
  readonly frame: Frame | null;
  readonly locked: boolean;
  onFrame(frame: Frame): void;
  onMove(end: Handle["end"], value: number): void;
  /** Told once there is something to propose a limit from. */
  onSensible(limit: number): void;
}

/** The chart, its handles and its lines' names. */
export function LimitChart(props: LimitChartProps) {
  const { metric, form, frame } = props;
  const query = useMemo(
    () => queryFor(metric, form, props.where),
    [metric, form.aggregate, form.by.join(), form.window, JSON.stringify(props.where)],
  );
  const followed = useQueries(query ? [query] : [], true);
  const plot = usePlot(followed, [form.aggregate]);
  const unit = unitOf(form.aggregate, metric.unit);
  useSensible(followed.old ? null : plot, unit, props.onSensible);
  const { handles, backs } = standing(form);
  const inSight = useSteady([...handles.map(({ value }) => value), ...backs]);
  const problem = followed.feeds.find((feed) => feed.problem !== null)?.problem;
  if (!query) return <p class="t2">{words.chart.waits}</p>;
  if (problem) return <Refused problem={problem} />;
  const table = asTable.value;
  return (
    <>
      <div class="chart-box limit-box">
        <Chart
          title={words.chart.sentence(metric.name, form.aggregate, form.by.join(", "))}
          metric={metric.name}
          plot={plot}
          unit={unit}
          fromZero={startsAtZero(form.aggregate, unit)}
          rangeMs={DAY_MS}
          rangeWords={words.chart.range}
          nowMs={nowMs.value}
          staleMs={staleMs.value}
          staleText={staleText.value}
          dimmed={followed.old || lostMs.value !== null}
          zone={zone.value}
          height={CHART_PX}
          asTable={table}
          inSight={inSight.values}
          namesApart
          onFrame={props.onFrame}
        />
        {frame && !table && (
          <Handles
            frame={frame}
            handles={handles}
            backs={backs}
            unit={unit}
            locked={props.locked}
            onMove={props.onMove}
            onDrag={inSight.hold}
          />
        )}
      </div>
      {plot && emptinessOf(plot, [form.aggregate]) && (
        <Empty title={words.chart.few}>
          <span class="s">{words.chart.fewHint}</span>
        </Empty>
      )}
      {plot && !table && <Names plot={plot} />}
      {frame && handles.length > 0 && !props.locked && !table && (
        <p class="t3 s limit-hint hide-s">{words.chart.hint(withUnit(stepOf(frame), unit))}</p>
      )}
    </>
  );
}

function Names({ plot }: { plot: Plot }) {
  if (plot.lines.length < 2) return null;
  return (
    <ul class="legend" aria-label={words.chart.lines}>
      {plot.lines.map((line) => (
        <li key={line.id} class="k">
          <LineKey stroke={line.stroke} />
          {line.name}
        </li>
      ))}
    </ul>
  );
}

function queryFor(metric: Metric, form: RuleForm, where: readonly unknown[]) {
  const ms = lengthOf(form.window);
  const fits = metric.aggregates.includes(form.aggregate) && ms !== null;
  if (!fits || ms % metric.resolution_ms !== 0) return null;
  // A step longer than the window would leave out what happened between two of them.
  const stepMs = Math.max(Math.min(ms, DAY_MS / POINTS), DAY_MS / MOST_POINTS);
  const panes = Math.ceil(stepMs / metric.resolution_ms);
  const asking = askingOf(
    {
      type: "chart",
      metric: metric.name,
      by: form.by,
      where,
      window: { kind: "sliding", length: form.window },
    },
    form.aggregate,
  );
  return queryOf({ ...asking, top: MOST_LINES }, "24h", lengthText(panes * metric.resolution_ms));
}

/** Returns the limits and recoveries that are numbers. */
function standing(form: RuleForm): { handles: readonly Handle[]; backs: readonly number[] } {
  const ends: readonly Handle["end"][] =
    form.side === "outside" ? ["low", "high"] : [form.side === "below" ? "low" : "high"];
  const handles = ends.flatMap((end) => {
    const value = numberOf(form[end]);
    return value === null ? [] : [{ end, value }];
  });
  const backs = [form.backLow, form.backHigh].map(numberOf).filter((one) => one !== null);
  return { handles, backs };
}

/** Returns what must be in sight; while it is held, a drag does not move the scale under itself. */
function useSteady(values: readonly number[]) {
  const [held, setHeld] = useState<readonly number[] | null>(null);
  const newest = useRef(values);
  newest.current = values;
  return {
    values: held ?? values,
    hold: (holds: boolean) => setHeld(holds ? newest.current : null),
  };
}

function useSensible(plot: Plot | null, unit: string, tell: (limit: number) => void): void {
  const limit = useMemo(() => {
    const most = unit === "%" ? 100 : Number.POSITIVE_INFINITY;
    return (
      plot &&
      sensibleLimit(
        plot.lines.map((line) => line.value),
        most,
      )
    );
  }, [plot, unit]);
  useEffect(() => {
    if (limit !== null) tell(limit);
  }, [limit]);
}
