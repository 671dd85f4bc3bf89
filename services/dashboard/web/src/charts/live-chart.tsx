/** A chart that follows its queries: lines, states and words for whatever the server says. */
import { useMemo } from "preact/hooks";
import { Empty, Refused } from "../components/notes";
import { chartRules, openAlerts, useReader } from "../lib/alerts";
import { startsAtZero } from "../lib/numbers";
import { shownNowMs } from "../lib/pause";
import { lostMs, staleMs, staleText } from "../lib/shown";
import { asTable, range, zone } from "../lib/view";
import type { Followeds } from "../live/use";
import { words } from "../messages.en";
import { Chart } from "./chart";
import { type Emptiness, emptinessOf } from "./empty";
import { Legend } from "./legend";
import { type Plot, plotOf } from "./plot";
import { firingOn, limitsOn, rulesOn, type Shown } from "./watched";

/** Returns the plot of what was answered; null before the first answer. */
export function usePlot(followed: Followeds, aggregates: readonly string[]): Plot | null {
  const models = followed.feeds.map((feed) => feed.model);
  // models are compared one by one
  return useMemo(() => {
    const asked = models.flatMap((model, at) =>
      model ? [{ model, aggregate: aggregates[at] ?? "" }] : [],
    );
    return asked.length > 0 ? plotOf(asked) : null;
  }, [...models, aggregates.join()]);
}

interface LiveChartProps {
  readonly title: string;
  readonly shown: Shown;
  readonly followed: Followeds;
  readonly plot: Plot | null;
  readonly height: number;
}

/** The chart with its legend; in its place a refusal, or why it is empty. */
export function LiveChart(props: LiveChartProps) {
  const { followed, plot } = props;
  const { metric, aggregates } = props.shown;
  const watched = useWatched(props);
  const problem = followed.feeds.find((feed) => feed.problem !== null)?.problem;
  if (problem) return <Refused problem={problem} />;
  const aggregate = aggregates[0] ?? "count";
  const unit = plot?.unit ?? "";
  const empty = plot && emptinessOf(plot, aggregates);
  return (
    <>
      <div class="chart-box">
        <Chart
          title={props.title}
          metric={metric}
          plot={plot}
          unit={unit}
          fromZero={startsAtZero(aggregate, unit)}
          rangeMs={range.value.ms}
          rangeWords={range.value.words}
          nowMs={shownNowMs.value}
          staleMs={staleMs.value}
          staleText={staleText.value}
          dimmed={followed.old || lostMs.value !== null}
          zone={zone.value}
          height={props.height}
          asTable={asTable.value}
          limits={watched.limits}
          firing={watched.firing}
        />
        {empty && !asTable.value && <Why empty={empty} />}
      </div>
      {plot && empty === null && !asTable.value && <Legend plot={plot} />}
    </>
  );
}

/** Returns the limits of the metric's rules, and since when they fire. */
function useWatched({ shown, plot }: LiveChartProps) {
  const known = useReader(chartRules).items ?? [];
  const alerts = useReader(openAlerts).items ?? [];
  const on = rulesOn(known, shown);
  return {
    limits: plot ? limitsOn(on, plot) : [],
    firing: firingOn(on, alerts, shownNowMs.value),
  };
}

/** What stands in place of lines. */
function Why({ empty: { few, why } }: { empty: Emptiness }) {
  const said = words.chart;
  const [title, hint] = few
    ? [said.few(few.aggregate), said.fewHint(few.aggregate, few.least)]
    : said.why(range.value.words)[why];
  return (
    <div class="chart-empty">
      <Empty title={title}>
        <span class="s">{hint}</span>
      </Empty>
    </div>
  );
}
