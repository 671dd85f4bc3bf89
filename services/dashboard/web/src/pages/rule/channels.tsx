/** Who is told: channels to choose from, or how one is made. */
import type { ProblemPlace } from "../../live/wire";
import { words as allWords } from "../../messages.en";
import { ruleWords as words } from "../../messages.rules.en";

interface ChannelsProps {
  readonly chosen: readonly string[];
  /** Those that are defined; null while that is not known. */
  readonly known: readonly string[] | null;
  /** Whether all are told where none is chosen. */
  readonly everybody: boolean;
  readonly fault: ProblemPlace | undefined;
  onChange(chosen: readonly string[]): void;
}

/** A button for each channel; one that is named but not defined says so. */
export function Channels({ chosen, known, everybody, fault, onChange }: ChannelsProps) {
  const offered = [...new Set([...(known ?? []), ...chosen])];
  const toggled = (name: string) =>
    onChange(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  const strange = (name: string) => known !== null && !known.includes(name);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row everywhere
    <div class="say-f" role="group" aria-labelledby="rule-tell">
      <div class="say-row wrap">
        <span class="t2" id="rule-tell">
          {words.say.tell}
        </span>
        {offered.map((name) => (
          <button
            type="button"
            key={name}
            class="chip press"
            data-testid="rule-channel"
            aria-pressed={chosen.includes(name)}
            onClick={() => toggled(name)}
          >
            {strange(name) ? words.say.unknownChannel(name) : name}
          </button>
        ))}
        {everybody && chosen.length === 0 && known?.length !== 0 && (
          <span class="t2" title={words.say.everybodyWhy}>
            {words.say.everybody}
          </span>
        )}
        {known?.length === 0 && <How />}
      </div>
      {fault && (
        <span class="bad s said fault" data-testid="field-fault">
          {allWords.errors.required(fault)}
        </span>
      )}
    </div>
  );
}

function How() {
  return (
    <details class="say-how" data-testid="no-channel">
      <summary>
        <span class="t2">{words.channels.none}</span> <u>{words.channels.how}</u>
      </summary>
      <p class="t2">{words.channels.steps}</p>
      <pre class="code">{words.channels.text}</pre>
    </details>
  );
}
