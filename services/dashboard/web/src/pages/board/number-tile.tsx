/** A number with its accuracy, its state and its shape over the range. */
import { useMemo } from "preact/hooks";
import type { Metric, Tile } from "../../api/shapes";
import { plotOf } from "../../charts/plot";
import { Spark } from "../../charts/spark";
import { shownOf } from "../../charts/watched";
import { Fires } from "../../components/fires";
import { Icon, type IconName } from "../../components/icon";
import { type NumberView, numberView, type TileState } from "../../lib/number-view";
import { exact, startsAtZero } from "../../lib/numbers";
import { shownNowMs } from "../../lib/pause";
import { aggregatesOf, askingOf, numberStep, queryOf, windowLength } from "../../lib/query";
import { lostMs, staleMs, throughMs } from "../../lib/shown";
import { range, to, zone } from "../../lib/view";
import { fresh } from "../../live/live";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";

const MARKS: Readonly<Partial<Record<TileState, readonly [string, IconName, string]>>> = {
  stale: ["warn", "stale", words.tile.stale],
  error: ["bad", "alert", words.tile.error],
  incomplete: ["warn", "alert", words.tile.incomplete],
  rebuilding: ["none", "replay", words.tile.rebuilding],
};

interface NumberTileProps {
  readonly tile: Tile;
  /** All metrics; null until they are known. */
  readonly metrics: readonly Metric[] | null;
}

/** One tile. */
export function NumberTile({ tile, metrics }: NumberTileProps) {
  const [element, visible] = useVisible<HTMLAnchorElement>();
  const aggregate = aggregatesOf(tile)[0] ?? "count";
  const length = windowLength(tile);
  const asking = askingOf(tile, aggregate);
  const shown = shownOf(asking, [aggregate]);
  const resolutionMs = metrics?.find((one) => one.name === tile.metric)?.resolution_ms;
  const step = resolutionMs && length ? numberStep(resolutionMs, range.value.ms) : undefined;
  const query = queryOf(asking, range.value.value, step);
  const { feeds, old } = useQueries([query], visible && metrics !== null);
  const feed = feeds[0] ?? { model: null, problem: null, partial: null, nextPart: 1 };
  const view = numberView(feed, {
    aggregate,
    windowMs: shown.windowMs,
    rangeWords: range.value.words,
    zone: zone.value,
    nowMs: shownNowMs.value,
    throughMs: throughMs.value,
    staleMs: staleMs.value,
    lostMs: lostMs.value,
  });
  return (
    <a
      ref={element}
      href={to(`/m/${tile.metric}`)}
      class={`panel tile size-${tile.size ?? "S"} is-${view.state}${old ? " dimmed" : ""}`}
      data-testid="tile"
      data-metric={tile.metric}
      data-state={view.state}
    >
      <span class="name">
        <span>{tile.title || tile.metric}</span>
        {MARKS[view.state] ? <Mark state={view.state} /> : <Fires shown={shown} />}
      </span>
      <Value view={view} />
      <span class="err" title={view.detail}>
        {view.detail}
      </span>
      <TileSpark feed={feed} aggregate={aggregate} />
    </a>
  );
}

function Mark({ state }: { state: TileState }) {
  const mark = MARKS[state];
  if (!mark) return null;
  const [tone, icon, text] = mark;
  const behind = state === "stale" && fresh.value?.status === "behind";
  const word = behind ? words.tile.behind : text;
  return (
    <span class={`state ${tone}`}>
      <Icon name={icon} />
      <span class="w">{word}</span>
    </span>
  );
}

function Value({ view }: { view: NumberView }) {
  if (view.state === "loading") return <span class="skel skel-value" />;
  return (
    <span class="val">
      <b
        class={view.open ? "open" : undefined}
        title={exact(view.exact)}
        data-testid="tile-value"
        data-value={view.exact ?? ""}
      >
        {view.value}
      </b>
      <span class="u">{view.unit}</span>
      {view.change && (
        <span class="d" title={view.versus}>
          {view.change}
        </span>
      )}
    </span>
  );
}

function TileSpark({
  feed,
  aggregate,
}: {
  feed: Parameters<typeof numberView>[0];
  aggregate: string;
}) {
  const { model } = feed;
  const through = throughMs.value;
  // Once a pane is often enough to decide which window is over.
  const grain = model?.metric.resolution_ms ?? 1_000;
  const edge = through === null ? null : Math.floor(through / grain) * grain;
  const plot = useMemo(
    () => (model ? plotOf([{ model, aggregate }], edge) : null),
    [model, aggregate, edge],
  );
  if (!plot) return <span class="skel skel-spark" />;
  const stepMs = Math.max(1_000, range.value.ms / 400);
  const toMs = Math.ceil(shownNowMs.value / stepMs) * stepMs;
  return (
    <Spark
      plot={plot}
      fromMs={toMs - range.value.ms}
      toMs={toMs}
      fromZero={startsAtZero(aggregate)}
    />
  );
}
