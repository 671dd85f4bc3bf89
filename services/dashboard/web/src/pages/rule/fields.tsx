/** The words and fields of a rule's sentence. */
import type { ComponentChildren } from "preact";
import { Excerpt } from "../../components/excerpt";
import type { ProblemPlace } from "../../live/wire";
import { words as allWords } from "../../messages.en";

interface SayProps {
  readonly id: string;
  readonly text: string;
  /** Whether the label is for screen readers alone: the sentence reads on without it. */
  readonly quiet?: boolean;
  readonly fault?: ProblemPlace | undefined;
  readonly children: ComponentChildren;
}

/** A word of the sentence with its field, and below it what is wrong with it. */
export function Say({ id, text, quiet, fault, children }: SayProps) {
  return (
    <span class="say-f">
      <span class="say-row">
        <label class={quiet ? "sr" : "t2"} for={`rule-${id}`}>
          {text}
        </label>
        {children}
      </span>
      {fault && (
        <span class="bad s said fault" id={`rule-${id}-fault`} data-testid="field-fault">
          {allWords.errors.required(fault)}
          <Excerpt place={fault} />
        </span>
      )}
    </span>
  );
}

export type Choice = readonly [value: string, text: string];

interface SelectProps {
  readonly id: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  onPick(value: string): void;
}

/** What is chosen is there even where it is offered no more. */
export function Select({ id, value, choices, onPick }: SelectProps) {
  const known = choices.some(([one]) => one === value);
  return (
    <select
      id={`rule-${id}`}
      class="sel"
      data-testid={`rule-${id}`}
      value={value}
      onChange={(change) => onPick(change.currentTarget.value)}
    >
      {!known && <option value={value}>{value}</option>}
      {choices.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface TextProps {
  readonly id: string;
  readonly value: string;
  readonly hint?: string;
  readonly label?: string | undefined;
  readonly number?: boolean;
  readonly wide?: boolean;
  readonly short?: boolean;
  readonly wrong?: boolean;
  readonly class?: string;
  onInput(value: string): void;
}

export function Text({ id, value, hint, label, onInput, ...rest }: TextProps) {
  const wrong = rest.wrong ?? false;
  const width = rest.wide ? "w-l" : rest.short ? "w-s" : "w-m";
  return (
    <input
      id={`rule-${id}`}
      class={`field ${width} ${rest.class ?? ""} ${wrong ? "wrong" : ""}`}
      type="text"
      inputMode={rest.number ? "decimal" : undefined}
      data-testid={`rule-${id}`}
      autocomplete="off"
      spellcheck={false}
      placeholder={hint}
      aria-label={label}
      aria-invalid={wrong}
      aria-describedby={wrong ? `rule-${id}-fault` : undefined}
      value={value}
      onInput={(input) => onInput(input.currentTarget.value)}
    />
  );
}
