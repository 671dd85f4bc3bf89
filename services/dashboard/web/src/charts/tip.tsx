/** What stands under the chart's cursor: time, state, values with their bounds. */
import { exact, short, withUnit } from "../lib/numbers";
import { clock, type Zone, zoneName } from "../lib/time";
import { stateAt } from "./describe";
import { LineKey } from "./legend";
import type { Plot } from "./plot";

const WIDTH_PX = 232;
const GAP_PX = 14;
const MOST = 10;

interface TipProps {
  readonly plot: Plot;
  readonly at: number;
  readonly unit: string;
  readonly zone: Zone;
  readonly leftPx: number;
  readonly widthPx: number;
}

/** The tooltip; on the side of the cursor where there is room. */
export function Tip({ plot, at, unit, zone, leftPx, widthPx }: TipProps) {
  const tMs = plot.tMs[at] ?? 0;
  const fits = leftPx + GAP_PX + WIDTH_PX < widthPx;
  const x = fits ? leftPx + GAP_PX : Math.max(0, leftPx - GAP_PX - WIDTH_PX);
  const lines = plot.lines.filter((line) => !Number.isNaN(line.value[at])).slice(0, MOST);
  return (
    <div class="tip" style={{ transform: `translate(${x}px, 24px)` }} aria-hidden="true">
      <div class="tip-head">
        <b>{clock(tMs, zone, "second")}</b>
        <span>
          {zoneName(zone, tMs)} · {stateAt(plot, at)}
        </span>
      </div>
      <table>
        <tbody>
          {lines.map((line) => (
            <tr key={line.id}>
              <td>
                <LineKey stroke={line.stroke} /> <span class="tip-name">{line.name}</span>
              </td>
              <td title={exact(line.value[at])}>
                <b>{withUnit(line.value[at], unit)}</b>
              </td>
              <td class="t3">
                {line.banded && `${short(line.low[at])} – ${short(line.high[at])}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
