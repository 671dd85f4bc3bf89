/** One metric: any of its aggregates, over any window, by any of its dimensions. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { useLoad } from "../../api/load";
import type { Definition, MetricDetail } from "../../api/shapes";
import { pathOf } from "../../api/stored";
import { LiveChart, usePlot } from "../../charts/live-chart";
import { shownOf } from "../../charts/watched";
import { ParamNotes, TimeControls } from "../../components/controls";
import { Icon } from "../../components/icon";
import { lazy, type PageProps, useTitle } from "../../components/lazy";
import { Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import { isList } from "../../lib/numbers";
import { type Asking, queryOf } from "../../lib/query";
import { current, replaceParams } from "../../lib/router";
import { may, session } from "../../lib/session";
import { lengthOf, lengthText, lengthWords } from "../../lib/time";
import { range, to } from "../../lib/view";
import { useChanges, useQueries } from "../../live/use";
import { lateWords } from "../../messages.late.en";
import { metricWords } from "../../messages.metrics.en";
import { chosenOf, windowsFor } from "./choice";
import { Filling } from "./filling";
import { PutOnBoard } from "./put-on-board";
import { SeriesPanel } from "./series-panel";
import { Waiting } from "./waiting";

const TopTexts = lazy(() => import("./top-texts"));
const Verified = lazy(() => import("./verified"));
const CorrectionsTab = lazy(() => import("./corrections-tab"));
const LedgerTab = lazy(() => import("./ledger-tab"));
const DefinitionTab = lazy(() => import("./definition-tab"));

const CHART_PX = 330;
const STARTING_MS = 2_000;
const WAITING_MS = 15_000;
const STEADY_MS = 60_000;

export default function MetricPage({ names }: PageProps) {
  const name = names.get("name") ?? "";
  useTitle(name);
  const ready = session.value?.signed_in ?? false;
  const path = ready ? `/metrics/${encodeURIComponent(name)}` : null;
  const [everyMs, setEveryMs] = useState(STARTING_MS);
  const detail = useLoad<MetricDetail>(path, everyMs);
  const starting = !detail.body?.active || detail.body.filling != null;
  const waiting = detail.body?.waiting != null;
  useEffect(
    () => setEveryMs(starting ? STARTING_MS : waiting ? WAITING_MS : STEADY_MS),
    [starting, waiting],
  );
  const definition = useLoad<Definition>(ready ? pathOf("metric", name) : null);
  useChanges(() => {
    detail.reload();
    definition.reload();
  });
  const metric = detail.body;
  const listed = metric !== null && isList(chosenOf(metric, current.value.params).aggregate);
  return (
    <>
      <div class="bar tight">
        <h1 class="mono name">{name}</h1>
        {metric?.unit && <span class="chip">{metric.unit}</span>}
        {metric && <span class="chip">{metricWords.metric.version(metric.version)}</span>}
        {metric?.capped && (
          <span class="state warn" title={metricWords.metrics.cappedWhy}>
            <Icon name="alert" />
            {metricWords.metric.capped}
          </span>
        )}
        {(metric?.verified || metric?.not_compared) && <Verified metric={metric} />}
        <span class="grow" />
        {metric && !listed && <PutOnBoard metric={metric} />}
        {metric && !listed && may("define") && (
          <a class="btn" data-testid="alert-me" href={toRule(metric)}>
            {metricWords.metric.alertMe}
          </a>
        )}
        <TimeControls />
      </div>
      <ParamNotes />
      {metric && <Waiting metric={metric} />}
      {metric && <Filling metric={metric} />}
      {definition.body && metric && <Summary definition={definition.body} metric={metric} />}
      {detail.problem && <Refused problem={detail.problem} retry={detail.reload} />}
      {metric && <Body metric={metric} definition={definition.body} />}
    </>
  );
}

/** Returns where a rule is begun on the number that is shown. */
function toRule(metric: MetricDetail): string {
  const { aggregate, window, by } = chosenOf(metric, current.value.params);
  const asked = new URLSearchParams({ metric: metric.name, agg: aggregate });
  if (window !== null) asked.set("win", window);
  if (by.length > 0) asked.set("by", by.join(","));
  const address = to("/rules/new");
  return `${address}${address.includes("?") ? "&" : "?"}${asked}`;
}

/** What the metric counts, as its definition says it. */
function Summary({ definition, metric }: { definition: Definition; metric: MetricDetail }) {
  const { events, where, value } = definition.parsed as {
    events?: { type?: string | readonly string[] };
    where?: string;
    value?: string;
  };
  const types = events?.type === undefined ? [] : [events.type].flat();
  return (
    <p class="summary t3 s">
      {types.length > 0 && (
        <span>
          {metricWords.metric.from} <code>{types.join(", ")}</code>
        </span>
      )}
      {where && (
        <span>
          {metricWords.metric.where} <code>{where}</code>
        </span>
      )}
      {value && (
        <span>
          {metricWords.metric.value} <code>{value}</code>
        </span>
      )}
      <span>{metricWords.metric.panes(lengthWords(metric.resolution_ms))}</span>
      <span>{metricWords.metric.lateness(lengthWords(metric.lateness_ms))}</span>
    </p>
  );
}

interface BodyProps {
  readonly metric: MetricDetail;
  readonly definition: Definition | null;
}

const TABS = [
  { value: "chart", text: metricWords.metric.tabs.chart },
  { value: "corrections", text: lateWords.tab },
  { value: "ledger", text: lateWords.ledger.tab },
  { value: "definition", text: metricWords.metric.tabs.definition },
] as const;

function Body({ metric, definition }: BodyProps) {
  const tab = TABS.find(({ value }) => value === current.value.params.get("tab"))?.value ?? "chart";
  return (
    <>
      <div class="bar tight">
        <Seg
          label={metricWords.metric.tabs.label}
          value={tab}
          choices={TABS}
          onPick={(next) => replaceParams({ tab: next === "chart" ? null : next })}
        />
        {tab === "chart" && <Pickers metric={metric} />}
      </div>
      {tab === "chart" && <Shown metric={metric} />}
      {tab === "corrections" && <CorrectionsTab metric={metric} />}
      {tab === "ledger" && <LedgerTab metric={metric} />}
      {tab === "definition" && <DefinitionTab metric={metric} definition={definition} />}
    </>
  );
}

/** Aggregate, window and dimensions. */
function Pickers({ metric }: { metric: MetricDetail }) {
  const chosen = chosenOf(metric, current.value.params);
  return (
    <>
      <Seg
        class="wrap"
        label={metricWords.metric.aggregates}
        value={chosen.aggregate}
        choices={metric.aggregates.map((one) => ({ value: one, text: one }))}
        onPick={(agg) => replaceParams({ agg })}
      />
      <label class="row t2">
        {metricWords.metric.window}
        <select
          class="sel"
          value={chosen.window ?? ""}
          onChange={(c) => replaceParams({ win: c.currentTarget.value || null })}
        >
          <option value="">{metricWords.metric.windowAuto}</option>
          {windowsFor(metric.resolution_ms, range.value.ms).map((length) => (
            <option key={length} value={length}>
              {metricWords.metric.sliding(lengthWords(lengthOf(length) ?? 0))}
            </option>
          ))}
        </select>
      </label>
      {metric.by.map((dimension) => {
        const on = chosen.by.includes(dimension);
        const next = on ? chosen.by.filter((d) => d !== dimension) : [...chosen.by, dimension];
        return (
          <button
            type="button"
            key={dimension}
            class="chip press"
            aria-pressed={on}
            onClick={() => replaceParams({ by: next.length > 0 ? next.join(",") : "-" })}
          >
            {metricWords.metric.by} {dimension}
          </button>
        );
      })}
    </>
  );
}

/** A list of texts is a table; every other aggregate is drawn. */
function Shown({ metric }: { metric: MetricDetail }) {
  const chosen = chosenOf(metric, current.value.params);
  return isList(chosen.aggregate) ? (
    <TopTexts metric={metric} chosen={chosen} />
  ) : (
    <ChartTab metric={metric} />
  );
}

function ChartTab({ metric }: { metric: MetricDetail }) {
  const chosen = chosenOf(metric, current.value.params);
  const asking: Asking = {
    metric: metric.name,
    aggregate: chosen.aggregate,
    by: chosen.by,
    window: chosen.window === null ? null : { kind: "sliding", length: chosen.window },
    top: 20,
  };
  const query = useMemo(
    () =>
      queryOf(
        asking,
        range.value.value,
        chosen.window === null ? undefined : stepFor(metric.resolution_ms),
      ),
    [
      metric.name,
      metric.resolution_ms,
      chosen.aggregate,
      chosen.by.join(),
      chosen.window,
      range.value.value,
    ],
  );
  const followed = useQueries([query], true);
  const aggregates = [chosen.aggregate];
  const plot = usePlot(followed, aggregates);
  const title = [
    metric.name,
    chosen.aggregate,
    chosen.by.length ? `${metricWords.metric.by} ${chosen.by.join(", ")}` : "",
  ]
    .filter(Boolean)
    .join(" ");
  return (
    <div class="grid">
      <section class="panel size-L">
        <div class="body pad-top">
          <LiveChart
            title={title}
            shown={shownOf(asking, aggregates)}
            followed={followed}
            plot={plot}
            height={CHART_PX}
          />
        </div>
      </section>
      <SeriesPanel metric={metric} aggregate={chosen.aggregate} plot={plot} query={query} />
    </div>
  );
}

/** Sliding windows move by whole panes, about a hundred and twenty in a range. */
function stepFor(resolutionMs: number): string {
  const rough = range.value.ms / 120;
  return lengthText(Math.max(1, Math.ceil(rough / resolutionMs)) * resolutionMs);
}
