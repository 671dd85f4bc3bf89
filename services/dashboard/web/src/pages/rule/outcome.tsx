/** What the backtest says in numbers and sentences. */
import type { ComponentChildren } from "preact";
import { Icon } from "../../components/icon";
import { integer, percent } from "../../lib/numbers";
import { stripsOf } from "../../lib/strips";
import { span } from "../../lib/time";
import { ruleWords as words } from "../../messages.rules.en";
import type { Tested } from "./use-backtest";

const FEW = 3;
/** A share of the time, from which on data are told as being there. */
const MUCH = 0.9;

interface OutcomeProps {
  readonly tested: Tested;
  /** Why nothing is asked, in words. */
  readonly wait: string | null;
  /** What stands below the numbers. */
  readonly children: ComponentChildren;
}

/** How often, for how long, of what, and what that leaves out. */
export function Outcome({ tested, wait, children }: OutcomeProps) {
  const { answer, old } = tested;
  return (
    <section class="panel c4">
      <header>
        <h2>{words.test.title}</h2>
        {old && answer && !wait && <span class="sub">{words.test.asking}</span>}
      </header>
      <div
        class={old ? "body outcome dimmed" : "body outcome"}
        data-testid="outcome"
        data-old={old}
      >
        {wait && <p class="t2">{wait}</p>}
        {answer && <Told tested={tested} />}
        {!wait && children}
      </div>
    </section>
  );
}

function Told({ tested: { answer } }: { tested: Tested }) {
  if (!answer) return null;
  const { fired, firing_ms, longest_ms, coverage } = answer;
  return (
    <>
      <p class="sr">{words.test.sentence(fired, span(firing_ms), span(longest_ms))}</p>
      <div class="outcome-numbers" aria-hidden="true">
        <span>
          <b data-testid="would-fire" data-value={fired}>
            {integer(fired)}
          </b>{" "}
          {words.test.times(fired)}
        </span>
        {fired > 0 && (
          <>
            <Length ms={firing_ms} text={words.test.inAll} />
            <Length ms={longest_ms} text={words.test.longest} />
          </>
        )}
      </div>
      <ul class="outcome-notes">
        <li>
          {coverage === null ? (
            <>
              <span class="t3">
                <Icon name="nodata" />
              </span>
              {words.test.nothing}
            </>
          ) : (
            <>
              <span class={coverage < MUCH ? "warn" : "good"}>
                <Icon name={coverage < MUCH ? "nodata" : "ok"} />
              </span>
              {words.test.coverage(answer.matched_series, percent(coverage))}
            </>
          )}
        </li>
        <Silent tested={answer} />
        {answer.capped && (
          <li>
            <span class="warn">
              <Icon name="alert" />
            </span>
            {words.test.capped}
          </li>
        )}
        <li>
          <span class="t3">
            <Icon name="stale" />
          </span>
          {words.test.not(answer.not_simulated.join(", "))}
        </li>
      </ul>
    </>
  );
}

/** A length: its numbers large, the last unit beside them. */
function Length({ ms, text }: { ms: number; text: string }) {
  const [, number = "", unit = ""] = /^(.*\d) (\D+)$/.exec(span(ms)) ?? [];
  return (
    <span>
      <b>{number}</b> {unit} {text}
    </span>
  );
}

function Silent({ tested }: { tested: NonNullable<Tested["answer"]> }) {
  const silent = stripsOf(tested).strips.filter((one) => one.silentMs > 0);
  return (
    <>
      {silent.slice(0, FEW).map((one) => (
        <li key={one.name}>
          <span class="warn">
            <Icon name="nodata" />
          </span>
          {words.test.silent(one.name || words.test.all, span(one.silentMs))}
        </li>
      ))}
    </>
  );
}
