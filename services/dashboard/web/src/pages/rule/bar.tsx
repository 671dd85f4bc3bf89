/** The bar above a rule: its name and version, how it is watched, and what can be done with it. */
import { Seg } from "../../components/seg";
import { MODES, type RuleForm } from "../../lib/rule-text";
import { may } from "../../lib/session";
import { ruleWords as words } from "../../messages.rules.en";
import { Delete } from "./delete";
import { toRules } from "./places";
import type { Writing } from "./use-rule";

interface BarProps {
  readonly rule: Writing;
  readonly name: string;
  readonly form: RuleForm | null;
  readonly asText: boolean;
  onView(asText: boolean): void;
  onMode(mode: string): void;
}

/** Back, name, mode, and the buttons; the one that saves stands last. */
export function Bar({ rule, name, form, asText, onView, onMode }: BarProps) {
  const version = rule.stored?.body.version;
  const locked = !may("define");
  return (
    <div class="bar tight">
      <a class="btn quiet sm" href={toRules()}>
        ‹ {words.back}
      </a>
      <h1 class={name ? "mono name" : undefined}>{name || words.newTitle}</h1>
      {version !== undefined && (
        <span class="chip">{rule.changed ? words.next(version) : words.version(version)}</span>
      )}
      <span class="grow" />
      {form && !locked && (
        <Seg
          label={words.mode.label}
          value={form.mode}
          choices={MODES.map((mode) => ({ value: mode as string, text: words.mode[mode] }))}
          onPick={onMode}
        />
      )}
      <button
        type="button"
        class="btn"
        data-testid="rule-yaml"
        aria-pressed={asText}
        disabled={form === null}
        onClick={() => onView(!asText)}
      >
        {words.yaml}
      </button>
      {rule.changed && (
        <button type="button" class="btn" onClick={rule.discard}>
          {words.discard}
        </button>
      )}
      {version !== undefined && !locked && <Delete rule={rule} name={name} />}
      <button
        type="submit"
        class="btn go"
        data-testid="rule-save"
        disabled={locked || (version !== undefined && !rule.changed)}
        aria-disabled={rule.busy}
        title={locked ? words.scope : undefined}
      >
        {rule.busy ? words.saving : version === undefined ? words.create : words.save(version + 1)}
      </button>
    </div>
  );
}
