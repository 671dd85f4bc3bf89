/** The message of the rule as its channels would get it now, and a test of each of them. */
import { post } from "../../api/client";
import type { RulePreview } from "../../api/schema";
import { ruleWords } from "../../messages.rules.en";
import { TestButton } from "../alerts/channel-test";
import { useAsked } from "./use-asked";

const said = ruleWords.message;

interface MessageProps {
  /** The rule as it is written now; null while it lacks something. */
  readonly text: string | null;
  /** Who would be told, and is defined. */
  readonly channels: readonly string[];
}

/** Asked anew on each change; the server writes the words. */
export default function Message({ text, channels }: MessageProps) {
  const { answer, problem, old } = useAsked(text, previewed);
  return (
    <section class="panel rule-message" data-testid="rule-message">
      <header>
        <h2>{said.title}</h2>
        <span class="sub">{said.sub}</span>
      </header>
      <div class="body stack">
        {answer === null && <p class="t2">{text === null || problem ? said.waits : said.asking}</p>}
        {answer && (
          <div class={old ? "told dimmed" : "told"} data-old={old}>
            <p class="b" data-testid="message-title">
              {answer.title}
            </p>
            {answer.text && <p class="t2">{answer.text}</p>}
            <p class="t3 s">{standing(answer)}</p>
          </div>
        )}
        {channels.map((name) => (
          <div key={name} class="row wrap">
            <code>{name}</code>
            <TestButton name={name} />
          </div>
        ))}
      </div>
    </section>
  );
}

function standing({ value, beyond }: RulePreview): string {
  if (value === null) return said.noValue;
  return beyond ? said.beyond : said.within;
}

const previewed = (rule: string, signal: AbortSignal): Promise<RulePreview> =>
  post<RulePreview>("/rules/preview", { rule }, signal);
