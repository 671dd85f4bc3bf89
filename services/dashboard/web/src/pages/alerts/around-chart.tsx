/** The metric around an alert: its line, the limit, and the time in which it fired. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { post, problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { AlertDetail, Definition, MetricDetail } from "../../api/shapes";
import { pathOf } from "../../api/stored";
import { Chart } from "../../charts/chart";
import { Legend } from "../../charts/legend";
import { plotOf } from "../../charts/plot";
import { Empty, Refused } from "../../components/notes";
import { seriesText, sideOf } from "../../lib/limit-words";
import { startsAtZero } from "../../lib/numbers";
import { clockOn } from "../../lib/time";
import { asTable, zone } from "../../lib/view";

import { type Model, modelOf } from "../../live/model";
import type { Problem, WireAnswer } from "../../live/wire";
import { alertWords } from "../../messages.alerts.en";
import { type Around, type Asks, aroundOf, asksOf, limitLines, queryAround } from "./around";
import { listNowMs } from "./choice";

const CHART_PX = 250;
const said = alertWords.chart;

/** The chart; without the rule nobody knows any more what it asked of its metric. */
export function AroundChart({ alert, known }: { alert: AlertDetail; known: boolean }) {
  return known ? <Asking alert={alert} /> : <Gone />;
}

function Gone() {
  return (
    <Empty title={said.ruleGone}>
      <span class="s">{said.ruleGoneHint}</span>
    </Empty>
  );
}

/** Reads what the rule asks. */
function Asking({ alert }: { alert: AlertDetail }) {
  const rule = useLoad<Definition>(pathOf("rule", alert.rule));
  const metric = useLoad<MetricDetail>(
    alert.metric ? `/metrics/${encodeURIComponent(alert.metric)}` : null,
  );
  const asks = useMemo(
    () => rule.body && asksOf(rule.body.parsed as Readonly<Record<string, unknown>>),
    [rule.body],
  );
  if (rule.problem?.status === 404) return <Gone />;
  if (rule.problem) return <Refused problem={rule.problem} retry={rule.reload} />;
  if (metric.problem) return <Refused problem={metric.problem} retry={metric.reload} />;
  if (!asks || !metric.body) return <div class="chart-room" />;
  return <Drawn alert={alert} asks={asks} metric={metric.body} />;
}

interface DrawnProps {
  readonly alert: AlertDetail;
  readonly asks: Asks;
  readonly metric: MetricDetail;
}

function Drawn({ alert, asks, metric }: DrawnProps) {
  const { resolution_ms: resolutionMs, keep_ms: keepMs } = metric;
  const around = aroundOf(alert, asks.windowMs, { nowMs: listNowMs.value, resolutionMs, keepMs });
  const { model, problem } = useAnswer(alert, asks, around);
  const plot = useMemo(
    () => model && plotOf([{ model, aggregate: asks.aggregate }]),
    [model, asks.aggregate],
  );
  const { unit } = alert;
  if (problem && !plot) return <Refused problem={problem} />;
  const clocks = [around.fromMs, around.toMs].map((t) => clockOn(t, listNowMs.value, zone.value));
  const open = alert.state === "firing" || alert.state === "recovering";
  const endMs = open ? around.toMs : alert.at_ms;
  return (
    <>
      <Chart
        title={said.title(asks.metric, asks.aggregate, seriesText(alert.labels, asks.by))}
        metric={asks.metric}
        plot={plot}
        unit={unit}
        fromZero={startsAtZero(asks.aggregate, unit)}
        rangeMs={around.toMs - around.fromMs}
        rangeWords={said.range(clocks[0] ?? "", clocks[1] ?? "")}
        nowMs={around.toMs}
        staleMs={null}
        staleText=""
        dimmed={false}
        zone={zone.value}
        height={CHART_PX}
        asTable={asTable.value}
        limits={limitLines(alert, sideOf(alert), asks.recover)}
        firing={[[alert.since_ms, endMs]]}
      />
      {plot && !asTable.value && <Legend plot={plot} />}
    </>
  );
}

interface Answered {
  readonly model: Model | null;
  readonly problem: Problem | null;
}

/** Asks anew whenever the time around the alert has moved by a step. */
function useAnswer(alert: AlertDetail, asks: Asks, around: Around): Answered {
  const [answered, setAnswered] = useState<Answered>({ model: null, problem: null });
  const query = queryAround(asks, alert.labels, around);
  const text = JSON.stringify(query);
  // the text says what the query is
  useEffect(() => {
    const abort = new AbortController();
    post<WireAnswer>("/query", query, abort.signal).then(
      (answer) => setAnswered({ model: modelOf(answer), problem: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setAnswered((before) => ({ ...before, problem: problemOf(error) }));
      },
    );
    return () => abort.abort();
  }, [text]);
  return answered;
}
