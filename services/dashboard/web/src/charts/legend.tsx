/** Keys to what a chart draws. */
import type { Stroke } from "../lib/palette";
import { words } from "../messages.en";
import type { Plot } from "./plot";
import { bandsIn, provisionalFrom, quietIn } from "./plot";

/** A short piece of a line: color and dash. */
export function LineKey({ stroke, width = 16 }: { stroke: Stroke; width?: number }) {
  return (
    <svg class={`line-key stroke-${stroke.token}`} width={width} height="8" aria-hidden="true">
      <path d={`M0 4H${width}`} stroke-width="2" stroke-dasharray={stroke.dash.join(" ")} />
    </svg>
  );
}

/** The legend under a chart: bands, provisional, corrections, as far as they are there. */
export function Legend({ plot }: { plot: Plot }) {
  const { between, error } = bandsIn(plot);
  const corrected = plot.lines.some((line) => line.corrections.length > 0);
  return (
    <div class="legend">
      {between && <BandKey stroke={between.stroke} shape="between" path="M0 1H22M0 9H22" />}
      {error && <BandKey stroke={error.stroke} shape="error" path="M0 5H22" />}
      {quietIn(plot).map(([letter, text]) => (
        <span key={letter} class="k">
          <svg class="ground-key" width="14" height="10" aria-hidden="true">
            <rect x="0.5" y="0.5" width="13" height="9" rx="1" />
          </svg>
          {letter === "i" ? words.chart.incompleteLegend : text}
        </span>
      ))}
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

interface BandKeyProps {
  readonly stroke: Stroke;
  readonly shape: "between" | "error";
  readonly path: string;
}

function BandKey({ stroke, shape, path }: BandKeyProps) {
  return (
    <span class="k">
      <svg class={`line-key stroke-${stroke.token}`} width="22" height="10" aria-hidden="true">
        <rect class={`band ${shape}`} y="1" width="22" height="8" rx="1" />
        <path d={path} stroke-width="1.75" />
      </svg>
      {words.chart.bands[shape]}
    </span>
  );
}
