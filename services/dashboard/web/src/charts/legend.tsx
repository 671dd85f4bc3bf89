/** Keys to what a chart draws. */
import type { Stroke } from "../lib/palette";
import { words } from "../messages.en";
import type { Plot } from "./plot";
import { provisionalFrom } from "./plot";

/** A short piece of a line: color and dash. */
export function LineKey({ stroke, width = 16 }: { stroke: Stroke; width?: number }) {
  return (
    <svg class={`line-key stroke-${stroke.token}`} width={width} height="8" aria-hidden="true">
      <path d={`M0 4H${width}`} stroke-width="2" stroke-dasharray={stroke.dash.join(" ")} />
    </svg>
  );
}

/** The legend under a chart: band, provisional, corrections, as far as they are there. */
export function Legend({ plot }: { plot: Plot }) {
  const banded = plot.lines.find((line) => line.banded);
  const corrected = plot.lines.some((line) => line.corrections.length > 0);
  return (
    <div class="legend">
      {banded && (
        <span class="k">
          <svg
            class={`line-key stroke-${banded.stroke.token}`}
            width="22"
            height="8"
            aria-hidden="true"
          >
            <rect class="band" width="22" height="8" rx="1" />
            <path d="M0 4H22" stroke-width="1.75" />
          </svg>
          {words.chart.band}
        </span>
      )}
      {provisionalFrom(plot) !== null && (
        <span class="tag-prov">{words.chart.provisionalLegend}</span>
      )}
      {corrected && (
        <span class="k">
          <svg class="fix" width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
            <path d="M5 0l5 5-5 5-5-5z" fill="currentColor" />
          </svg>
          {words.chart.corrected}
        </span>
      )}
    </div>
  );
}
