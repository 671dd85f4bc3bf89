/** Strips under the chart: for each group when it would have fired, in colors and in words. */
import type { Backtest } from "../../api/schema";
import type { Frame } from "../../lib/limit";
import { type Strip, stripsOf } from "../../lib/strips";
import { span } from "../../lib/time";
import { ruleWords as words } from "../../messages.rules.en";

interface StripsProps {
  readonly answer: Backtest;
  /** Where the chart's time lies, to lie below it. */
  readonly frame: Frame | null;
  readonly old: boolean;
}

const CLASSES = { firing: "fire", pending: "pend", no_data: "mute" } as const;

/** All strips that tell something, and what their colors mean. */
export function Strips({ answer, frame, old }: StripsProps) {
  const { strips, more } = stripsOf(answer);
  const drawn = new Set(strips.flatMap((one) => one.pieces.map(({ state }) => state)));
  return (
    <div class={old ? "strips dimmed" : "strips"} data-testid="strips">
      <ul aria-label={words.test.strips}>
        {strips.map((one) => (
          <Row key={one.name} strip={one} frame={frame} />
        ))}
      </ul>
      {more > 0 && <p class="t3 s">{words.test.more(more)}</p>}
      <div class="legend">
        {(["firing", "pending", "no_data"] as const)
          .filter((state) => drawn.has(state))
          .map((state) => (
            <span key={state} class="k">
              <svg class="strip-key" width="22" height="8" aria-hidden="true">
                <rect class={CLASSES[state]} x="0.5" y="0.5" width="21" height="7" rx="2" />
              </svg>
              {words.test.states[state]}
            </span>
          ))}
      </div>
    </div>
  );
}

function Row({ strip, frame }: { strip: Strip; frame: Frame | null }) {
  const name = strip.name || words.test.all;
  return (
    <li class="strip" data-testid="strip" data-fired={strip.fired}>
      <span class="strip-name" title={name} style={{ width: `${(frame?.left ?? 48) - 6}px` }}>
        {name}
      </span>
      <svg
        class="strip-bar"
        height="12"
        aria-hidden="true"
        style={frame ? { width: `${frame.width}px`, flex: "none" } : {}}
      >
        <rect class="calm" x="0" y="4.5" width="100%" height="3" rx="1.5" />
        {strip.pieces.map(({ state, from, width }) => (
          <rect
            key={`${state}${from}`}
            class={CLASSES[state]}
            x={`${from * 100}%`}
            y={state === "pending" ? 3 : 0.5}
            width={`max(3px, ${width * 100}%)`}
            height={state === "pending" ? 6 : 11}
            rx="2"
          />
        ))}
      </svg>
      <span
        class="strip-end"
        title={strip.fired > 0 ? words.test.firingFor(span(strip.firingMs)) : undefined}
      >
        {ending(strip)}
      </span>
    </li>
  );
}

/** What a strip says, in words. */
function ending({ fired, pendingMs, silentMs }: Strip): string {
  if (fired > 0) return words.test.firings(fired);
  if (pendingMs > 0) return words.test.pendings(span(pendingMs));
  return silentMs > 0 ? words.test.states.no_data : words.test.none;
}
