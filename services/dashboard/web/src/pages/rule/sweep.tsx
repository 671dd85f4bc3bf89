/** How often the rule would have fired at other limits; one of them is taken by a click. */
import type { BacktestLimit } from "../../api/schema";
import { limitText } from "../../lib/limit-words";
import { integer } from "../../lib/numbers";
import type { RuleForm } from "../../lib/rule-text";
import { type Tried, taken, triedOf } from "../../lib/sweep";
import { span } from "../../lib/time";
import { ruleWords } from "../../messages.rules.en";

const said = ruleWords.sweep;
const WIDTH_PX = 96;

interface SweepProps {
  readonly sweep: readonly BacktestLimit[];
  readonly form: RuleForm;
  readonly unit: string;
  readonly locked: boolean;
  onTake(change: Partial<RuleForm>): void;
}

/** A row for each limit, lowest first. */
export function Sweep({ sweep, form, unit, locked, onTake }: SweepProps) {
  if (sweep.length < 2) return null;
  return (
    <div class="sweep" data-testid="sweep">
      <h3>{said.title}</h3>
      <ul>
        {triedOf(sweep, form).map((one) => (
          <li key={String(one.limit)} aria-current={one.own ? "true" : undefined}>
            <button
              type="button"
              data-testid="sweep-limit"
              data-fired={one.fired}
              disabled={locked || one.own}
              title={one.own ? said.own : said.take}
              onClick={() => onTake(taken(one.limit, form))}
            >
              <span class="num">{limitText(one.limit, unit)}</span>
              <Bar tried={one} />
              <span>{said.fired(one.fired, integer(one.fired), span(one.firingMs))}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Bar({ tried: { fired, share, own } }: { tried: Tried }) {
  return (
    <svg class="strip-bar" width={WIDTH_PX} height="10" aria-hidden="true">
      <rect class="track" x="0" y="0" width="100%" height="10" rx="2" />
      {fired > 0 && (
        <rect
          class={own ? "fire" : "other"}
          x="0"
          y="0"
          width={Math.max(3, share * WIDTH_PX)}
          height="10"
          rx="2"
        />
      )}
    </svg>
  );
}
