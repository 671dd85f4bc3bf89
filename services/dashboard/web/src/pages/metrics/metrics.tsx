/** All metrics: the last hour's line, the newest value, series. */
import { useMemo, useState } from "preact/hooks";
import { useLoad } from "../../api/load";
import type { Metric, Page } from "../../api/shapes";
import { plotOf } from "../../charts/plot";
import { Spark } from "../../charts/spark";
import { Icon } from "../../components/icon";
import { useTitle } from "../../components/lazy";
import { Empty, Note, Refused } from "../../components/notes";
import { TileMark } from "../../components/tile-mark";
import { VirtualTable } from "../../components/virtual-table";
import { numberView } from "../../lib/number-view";
import { exact, integer, isList, NONE, startsAtZero } from "../../lib/numbers";
import { shownNowMs } from "../../lib/pause";
import { queryOf } from "../../lib/query";
import { may, session } from "../../lib/session";
import { lostMs, staleMs } from "../../lib/shown";
import { lengthWords } from "../../lib/time";
import { putting, to, toPut, zone } from "../../lib/view";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";
import { metricWords } from "../../messages.metrics.en";

const HOUR_MS = 3_600_000;
const RELOAD_MS = 15_000;

export default function Metrics() {
  useTitle(metricWords.metrics.title);
  const ready = session.value?.signed_in ?? false;
  const { body, problem, reload } = useLoad<Page<Metric>>(ready ? "/metrics" : null, RELOAD_MS);
  const [text, setText] = useState("");
  const leading = putting.value && may("define") && (body?.items.length ?? 0) > 0;
  const rows = useMemo(() => matching(body?.items ?? [], text), [body, text]);
  return (
    <>
      <div class="bar">
        <h1>{metricWords.metrics.title}</h1>
        <span class="sub">{body && metricWords.metrics.sub(body.items.length)}</span>
        <span class="grow" />
        <input
          class="field"
          type="search"
          aria-label={metricWords.metrics.findLabel}
          placeholder={metricWords.metrics.find}
          value={text}
          onInput={(input) => setText(input.currentTarget.value)}
        />
        <a class="btn go" href={to("/metrics/new")}>
          <Icon name="plus" small />
          {metricWords.metrics.make}
        </a>
      </div>
      {problem && <Refused problem={problem} retry={reload} />}
      {leading && (
        <Note tone="good" icon="board">
          {metricWords.put.choose}
        </Note>
      )}
      {body && body.items.length === 0 && (
        <Empty icon="metric" title={metricWords.metrics.none}>
          <span class="s">{metricWords.metrics.noneHint}</span>
          <a class="btn" href={to("/live")}>
            {words.nav.live}
          </a>
        </Empty>
      )}
      {rows.length > 0 && <MetricTable rows={rows} />}
      {body && body.items.length > 0 && rows.length === 0 && (
        <Empty icon="search" title={metricWords.metrics.noMatch(text)}>
          <button type="button" class="btn sm" onClick={() => setText("")}>
            {metricWords.metrics.clear}
          </button>
        </Empty>
      )}
    </>
  );
}

function matching(items: readonly Metric[], text: string): readonly Metric[] {
  const wanted = text.trim().toLowerCase();
  const said = (m: Metric) => [m.name, m.unit ?? "", ...m.by].join(" ").toLowerCase();
  return items
    .filter((metric) => said(metric).includes(wanted))
    .sort((a, b) => a.name.localeCompare(b.name));
}

function MetricTable({ rows }: { rows: readonly Metric[] }) {
  const head = metricWords.metrics.head;
  return (
    <div class="panel">
      <VirtualTable
        label={metricWords.metrics.title}
        tall
        rows={rows}
        head={
          <tr>
            <th>{head.name}</th>
            <th>{head.line}</th>
            <th class="num">{head.now}</th>
            <th class="num">{head.series}</th>
            <th>{head.by}</th>
            <th class="num">{head.version}</th>
          </tr>
        }
        row={(metric) => <MetricRow key={metric.name} metric={metric} />}
      />
    </div>
  );
}

function MetricRow({ metric }: { metric: Metric }) {
  const [element, visible] = useVisible<HTMLTableRowElement>();
  const aggregate = metric.aggregates.find((one) => !isList(one)) ?? "count";
  const { feeds } = useQueries([queryOf({ metric: metric.name, aggregate }, "1h")], visible);
  const feed = feeds[0];
  const model = feed?.model ?? null;
  const plot = useMemo(() => (model ? plotOf([{ model, aggregate }]) : null), [model, aggregate]);
  const view = feed && numberView(feed, contextOf(aggregate));
  const toMs = Math.ceil(shownNowMs.value / 20_000) * 20_000;
  return (
    <tr ref={element} data-testid="metric-row" data-metric={metric.name}>
      <td>
        <a class="mono b" href={(putting.value ? toPut : to)(`/m/${metric.name}`)}>
          {metric.name}
        </a>{" "}
        {metric.capped && (
          <span class="state warn" title={metricWords.metrics.cappedWhy}>
            <Icon name="alert" />
            {metricWords.metrics.capped}
          </span>
        )}
        {!metric.active && <span class="tag-prov">{metricWords.metrics.starting}</span>}
      </td>
      <td class="cell-spark">
        {plot && (
          <Spark
            plot={plot}
            fromMs={toMs - HOUR_MS}
            toMs={toMs}
            fromZero={startsAtZero(aggregate)}
          />
        )}
      </td>
      <td class="num" title={view ? `${exact(view.exact)}, ${view.detail}` : undefined}>
        {view && <TileMark state={view.state} />}{" "}
        <b class={view?.open ? "open" : undefined}>{view?.value || NONE}</b>{" "}
        <span class="t3">{view?.unit}</span>{" "}
        <span class="t3 s">
          {aggregate}
          {view?.band && `, ${view.band}`}
        </span>
      </td>
      <td class="num">{integer(metric.series)}</td>
      <td class="mono s t2">{metric.by.join(", ") || NONE}</td>
      <td class="num t2">
        {metric.version} · {lengthWords(metric.resolution_ms)}
      </td>
    </tr>
  );
}

function contextOf(aggregate: string) {
  return {
    aggregate,
    windowMs: null,
    backMs: null,
    rangeWords: metricWords.metrics.lastHour,
    zone: zone.value,
    nowMs: shownNowMs.value,
    staleMs: staleMs.value,
    lostMs: lostMs.value,
  };
}
