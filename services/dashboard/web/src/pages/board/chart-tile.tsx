/** A chart on a board. */
import type { Tile } from "../../api/shapes";
import { LiveChart, usePlot } from "../../charts/live-chart";
import { shownOf } from "../../charts/watched";
import { Fires } from "../../components/fires";
import { unitOf } from "../../lib/numbers";
import { aggregatesOf, askingOf, queryOf, windowLength } from "../../lib/query";
import { range, to } from "../../lib/view";
import { useQueries, useVisible } from "../../live/use";
import { words } from "../../messages.en";

const LARGE_PX = 276;
const SMALL_PX = 212;

/** One chart; several percentiles of one metric become bands. */
export function ChartTile({ tile }: { tile: Tile }) {
  const [element, visible] = useVisible<HTMLElement>();
  const aggregates = aggregatesOf(tile);
  const queries = aggregates.map((one) => queryOf(askingOf(tile, one), range.value.value));
  const followed = useQueries(queries, visible);
  const plot = usePlot(followed, aggregates);
  const shown = shownOf(askingOf(tile, aggregates[0] ?? ""), aggregates);
  const size = tile.size ?? "M";
  const title = tile.title || `${tile.metric} ${aggregates.join(", ")}`;
  return (
    <section
      ref={element}
      class={`panel size-${size}`}
      data-testid="chart-tile"
      data-metric={tile.metric}
    >
      <header>
        <h2>
          <a class="plain" href={to(`/m/${tile.metric}`)}>
            {title}
          </a>
        </h2>
        <span class="sub">{subtitle(tile, followed.feeds[0]?.model?.metric.unit ?? null)}</span>
        <span class="grow" />
        <Fires shown={shown} />
        {plot && plot.of > plot.shown && (
          <span class="sub">{words.chart.showing(plot.shown, plot.of)}</span>
        )}
      </header>
      <div class="body">
        <LiveChart
          title={title}
          shown={shown}
          followed={followed}
          plot={plot}
          height={size === "L" ? LARGE_PX : SMALL_PX}
        />
      </div>
    </section>
  );
}

function subtitle(tile: Tile, unit: string | null): string {
  const aggregate = aggregatesOf(tile)[0] ?? "";
  const length = windowLength(tile);
  const parts = [
    aggregate === "rate" ? words.chart.perSecond : unitOf(aggregate, unit),
    length === null ? "" : words.chart.windowOf(length.replace(/(\d+)/, "$1 ")),
  ];
  return parts.filter(Boolean).join(" · ");
}
