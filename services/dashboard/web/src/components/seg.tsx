/** A row of buttons of which one is chosen, or several. */
import type { ComponentChildren } from "preact";

export interface Choice<T extends string> {
  readonly value: T;
  readonly text: ComponentChildren;
}

interface SegProps<T extends string> {
  readonly label: string;
  readonly choices: readonly Choice<T>[];
  readonly value: T;
  readonly class?: string;
  onPick(value: T): void;
}

/** One of several; arrow keys move. */
export function Seg<T extends string>({ label, choices, value, onPick, ...rest }: SegProps<T>) {
  const moved = (key: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key.key];
    if (step === undefined) return;
    key.preventDefault();
    const at = choices.findIndex((choice) => choice.value === value);
    const next = choices[(at + step + choices.length) % choices.length];
    if (!next) return;
    onPick(next.value);
    const group = key.currentTarget as HTMLElement;
    group.querySelector<HTMLElement>(`[data-value="${CSS.escape(next.value)}"]`)?.focus();
  };
  return (
    <div class={`seg ${rest.class ?? ""}`} role="radiogroup" aria-label={label} onKeyDown={moved}>
      {choices.map((choice) => (
        // biome-ignore lint/a11y/useSemanticElements: a button of the ARIA radio group pattern
        <button
          type="button"
          role="radio"
          key={choice.value}
          data-value={choice.value}
          aria-checked={choice.value === value}
          tabIndex={choice.value === value ? 0 : -1}
          onClick={() => onPick(choice.value)}
        >
          {choice.text}
        </button>
      ))}
    </div>
  );
}

interface TogglesProps {
  readonly label: string;
  readonly choices: readonly string[];
  readonly chosen: readonly string[];
  readonly testid?: string;
  onChange(chosen: readonly string[]): void;
}

/** Any of several. */
export function Toggles({ label, choices, chosen, testid, onChange }: TogglesProps) {
  const toggled = (choice: string) =>
    onChange(chosen.includes(choice) ? chosen.filter((c) => c !== choice) : [...chosen, choice]);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row everywhere
    <div class="seg wrap" role="group" aria-label={label} data-testid={testid}>
      {choices.map((choice) => (
        <button
          type="button"
          key={choice}
          aria-pressed={chosen.includes(choice)}
          onClick={() => toggled(choice)}
        >
          {choice}
        </button>
      ))}
    </div>
  );
}
