/** The rule as the text that is stored. */
import { Excerpt } from "../../components/excerpt";
import type { ProblemPlace } from "../../live/wire";
import { words as allWords } from "../../messages.en";
import { ruleWords as words } from "../../messages.rules.en";
import type { Writing } from "./use-rule";

interface TextViewProps {
  readonly rule: Writing;
  readonly plain: boolean;
  readonly errors: readonly ProblemPlace[];
  readonly locked: boolean;
}

/** The text, with what is wrong below it. */
export function TextView({ rule, plain, errors, locked }: TextViewProps) {
  return (
    <>
      {!plain && <p class="t2 rule-only">{words.textOnly}</p>}
      <textarea
        class="editor small"
        rows={11}
        spellcheck={false}
        readOnly={locked}
        aria-label={words.yamlLabel}
        data-testid="rule-text"
        aria-invalid={errors.length > 0}
        aria-describedby="rule-text-faults"
        value={rule.text}
        onInput={(input) => rule.setText(input.currentTarget.value)}
      />
      <div id="rule-text-faults">
        {errors.map((place) => (
          <p key={place.pointer} class="bad s said" data-testid="field-fault">
            {place.pointer && <code>{place.pointer}</code>} {allWords.errors.required(place)}
            <Excerpt place={place} />
          </p>
        ))}
      </div>
    </>
  );
}
