/** A number with its accuracy, its state and its shape over the range. */
import { useMemo } from "preact/hooks";
import type { Metric, Tile } from "../../api/shapes";
import { plotOf } from "../../charts/plot";
import { Spark } from "../../charts/spark";
import { shownOf } from "../../charts/watched";
import { Fires } from "../../components/fires";
import { isMarked, TileMark } from "../../components/tile-mark";
import { numberAsked } from "../../lib/number-query";
import { type NumberView, numberView } from "../../lib/number-view";
import { exact, startsAtZero } from "../../lib/numbers";
import { shownNowMs } from "../../lib/pause";
import { aggregatesOf } from "../../lib/query";
import { lostMs, staleMs } from "../../lib/shown";
import { lengthWords } from "../../lib/time";
import { range, to, zone } from "../../lib/view";
import { EMPTY_FEED } from "../../live/feed";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";

/** Of a metric that is not listed, which the server refuses anyway. */
const RESOLUTION_MS = 10_000;

interface NumberTileProps {
  readonly tile: Tile;
  /** All metrics; null until they are known. */
  readonly metrics: readonly Metric[] | null;
}

/** One tile. */
export function NumberTile({ tile, metrics }: NumberTileProps) {
  const [element, visible] = useVisible<HTMLAnchorElement>();
  const aggregate = aggregatesOf(tile)[0] ?? "count";
  const resolutionMs = metrics?.find((one) => one.name === tile.metric)?.resolution_ms;
  const asked = numberAsked(tile, aggregate, resolutionMs ?? RESOLUTION_MS, range.value);
  const { windowMs, backMs } = asked;
  const shown = shownOf(asked.asking, [aggregate]);
  const { feeds, old } = useQueries([asked.number, asked.line], visible && metrics !== null);
  const [feed = EMPTY_FEED, line = EMPTY_FEED] = feeds;
  const view = numberView(feed, {
    aggregate,
    windowMs,
    backMs,
    rangeWords: words.tile.last(lengthWords(backMs)),
    zone: zone.value,
    nowMs: shownNowMs.value,
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
        {isMarked(view.state) ? <TileMark state={view.state} /> : <Fires shown={shown} />}
      </span>
      <Value view={view} />
      <span class="err" title={view.detail}>
        {view.detail}
      </span>
      <TileSpark feed={line} aggregate={aggregate} />
    </a>
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
  const plot = useMemo(() => (model ? plotOf([{ model, aggregate }]) : null), [model, aggregate]);
  if (!plot) return feed.problem ? null : <span class="skel skel-spark" />;
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
