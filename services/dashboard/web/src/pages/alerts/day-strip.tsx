/** A rule's last 24 hours as a strip, and in words. */
import { span } from "../../lib/time";
import { alertWords } from "../../messages.alerts.en";
import type { Day } from "./day";

const said = alertWords.rules;
const CLASSES = { firing: "fire", withdrawn: "gone", unknown: "mute" } as const;
const WIDTH_PX = 120;

/** The strip; what is too short to be seen is drawn three pixels wide. */
export function DayStrip({ day }: { day: Day }) {
  const text = said.day(day.fired, span(day.firingMs));
  return (
    <span class="day" title={text} data-testid="day-strip" data-fired={day.fired}>
      <svg class="strip-bar" width={WIDTH_PX} height="12" aria-hidden="true">
        <rect class="calm" x="0" y="4.5" width="100%" height="3" rx="1.5" />
        {day.pieces.map(({ kind, from, width }) => (
          <rect
            key={`${kind}${from}`}
            class={CLASSES[kind]}
            x={Math.min(WIDTH_PX - 3, from * WIDTH_PX)}
            y={kind === "unknown" ? 3 : 0.5}
            width={Math.max(3, width * WIDTH_PX)}
            height={kind === "unknown" ? 6 : 11}
            rx="2"
          />
        ))}
      </svg>
      <span class="sr">{text}</span>
    </span>
  );
}
