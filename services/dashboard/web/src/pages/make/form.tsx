/** The form of a new metric: fields or YAML, checked and tried as one types. */
import { useEffect, useRef } from "preact/hooks";
import { AllowedLateness } from "../../components/allowed-lateness";
import { Excerpt } from "../../components/excerpt";
import { Leaving, Question } from "../../components/leaving";
import { Refused } from "../../components/notes";
import { Seg, Toggles } from "../../components/seg";
import {
  choicesOf,
  type Draft,
  type Faults,
  faultsOf,
  fitting,
  RESOLUTIONS,
  triedOf,
} from "../../lib/draft";
import { may } from "../../lib/session";
import type { ProblemPlace } from "../../live/wire";
import { words } from "../../messages.en";
import { makeWords } from "../../messages.make.en";
import { useValidation } from "../definitions/verdict";
import { Preview } from "./preview";
import { inField, isTold, waitOf } from "./told";
import { useMaking } from "./use-making";
import type { Writing } from "./use-writing";

interface MetricFormProps {
  readonly writing: Writing;
  /** Paths to suggest. */
  readonly fields: readonly string[];
}

/** Form, preview and the button that makes the metric. */
export function MetricForm({ writing, fields }: MetricFormProps) {
  const { draft, yaml, text } = writing;
  const validation = useValidation({ kind: "metric", name: "", text });
  const { problem, busy, isMade, make } = useMaking(text, validation);
  const errors = problem?.errors ?? validation?.errors ?? [];
  const faults = faultsOf(errors, draft, problem !== null);
  const told = isTold(problem, yaml !== null);
  const tried = triedOf(yaml === null ? draft : null, text, validation);
  const form = useRef<HTMLFormElement>(null);
  // Who pressed the button hears why, and stands where it is mended.
  useEffect(() => {
    if (problem) faultIn(form.current)?.focus();
  }, [problem]);
  return (
    <form
      ref={form}
      class="panel make"
      data-testid="metric-form"
      onSubmit={(submit) => {
        submit.preventDefault();
        make((yaml === null ? null : nameIn(yaml)) ?? draft.name.trim());
      }}
    >
      <header>
        <h2>{makeWords.title}</h2>
        {draft.value && <span class="sub">{makeWords.from(draft.value)}</span>}
        <span class="grow" />
        <Seg
          label={makeWords.yaml}
          value={yaml === null ? "form" : "yaml"}
          choices={[
            { value: "form", text: makeWords.form },
            { value: "yaml", text: makeWords.yaml },
          ]}
          onPick={(view) => (view === "yaml" ? writing.asText() : writing.asFields())}
        />
        <button
          type="submit"
          class="btn go"
          data-testid="metric-create"
          disabled={!may("define")}
          aria-disabled={busy}
          title={may("define") ? undefined : makeWords.scope}
        >
          {busy ? makeWords.creating : makeWords.create}
        </button>
      </header>
      <div class="body">
        {problem && !told && <Refused problem={problem} />}
        {yaml === null ? (
          <Fields draft={draft} fields={fields} faults={faults} onChange={writing.write} />
        ) : (
          <YamlField text={yaml} errors={errors} onChange={writing.writeText} />
        )}
        <AllowedLateness
          text={tried.valid ? tried.text : null}
          {...(yaml === null && {
            onPick: (length: string) => writing.write({ ...draft, allowed_lateness: length }),
          })}
        />
        <Preview
          text={tried.text}
          valid={tried.valid}
          wait={waitOf(tried.why, yaml === null ? faults : "text")}
        />
      </div>
      {writing.asked && (
        <Question
          {...makeWords.drop}
          close={() => writing.decide(false)}
          act={() => writing.decide(true)}
        />
      )}
      <Leaving changed={writing.isUnsaved && !isMade} />
    </form>
  );
}

/** Returns what to mend first: the first field that is wrong, or else the refusal itself. */
function faultIn(form: HTMLFormElement | null): HTMLElement | null {
  const first = form?.querySelector<HTMLElement>("[role=alert], textarea, .fault") ?? null;
  const row = first?.closest(".form-row");
  return row?.querySelector<HTMLElement>("input, [tabindex='0'], button") ?? first;
}

/** Returns the name in a definition's text, or null. */
export function nameIn(text: string): string | null {
  return /^\s*"?name"?\s*:\s*"?([a-z][a-z0-9_]*)"?/m.exec(text)?.[1] ?? null;
}

interface FieldsProps {
  readonly draft: Draft;
  readonly fields: readonly string[];
  readonly faults: Faults;
  onChange(draft: Draft): void;
}

const TEXTS = [
  ["name", makeWords.nameHint],
  ["type", makeWords.typeHint],
  ["unit", makeWords.unitHint],
  ["value", makeWords.valueHint],
  ["by", makeWords.byHint],
  ["where", makeWords.whereHint],
] as const;

/** Fields that need more than a third of the form. */
const WIDTHS: Readonly<Record<string, string>> = { where: "wide", by: "broad" };

function Fields({ draft, fields, faults, onChange }: FieldsProps) {
  const set = (change: Partial<Draft>) => onChange(fitting({ ...draft, ...change }));
  return (
    <div class="form-grid">
      <datalist id="metric-fields">
        {fields.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {TEXTS.map(([name, hint]) => (
        <TextField
          key={name}
          name={name}
          hint={hint}
          value={draft[name]}
          fault={faults.get(name)}
          suggest={name === "value" || name === "by"}
          onInput={(value) => set({ [name]: value })}
        />
      ))}
      <div class="form-row wide">
        <span id="label-aggregates">{makeWords.aggregates}</span>
        <Toggles
          label={makeWords.aggregates}
          testid="metric-aggregates"
          choices={choicesOf(draft)}
          chosen={draft.aggregates}
          onChange={(aggregates) => set({ aggregates })}
        />
        <Fault place={faults.get("aggregates")} />
      </div>
      <div class="form-row">
        <span>{makeWords.resolution}</span>
        <Seg
          label={makeWords.resolution}
          value={draft.resolution}
          choices={RESOLUTIONS.map((value) => ({ value: value as string, text: value }))}
          onPick={(resolution) => set({ resolution })}
        />
        <Fault place={faults.get("resolution")} />
      </div>
      <TextField
        name="allowed_lateness"
        hint={makeWords.latenessHint}
        value={draft.allowed_lateness}
        fault={faults.get("allowed_lateness")}
        suggest={false}
        onInput={(allowed_lateness) => set({ allowed_lateness })}
      />
    </div>
  );
}

interface TextFieldProps {
  readonly name: (typeof TEXTS)[number][0] | "allowed_lateness";
  readonly hint: string;
  readonly value: string;
  readonly fault: ProblemPlace | undefined;
  readonly suggest: boolean;
  onInput(value: string): void;
}

function TextField({ name, hint, value, fault, suggest, onInput }: TextFieldProps) {
  const id = `metric-${name}`;
  return (
    <div class={`form-row ${WIDTHS[name] ?? ""}`}>
      <label for={id}>{makeWords[name]}</label>
      <input
        id={id}
        class={fault ? "field mono wrong" : "field mono"}
        type="text"
        data-testid={id}
        autocomplete="off"
        spellcheck={false}
        placeholder={hint}
        aria-invalid={fault !== undefined}
        aria-describedby={fault ? `${id}-fault` : undefined}
        list={suggest ? "metric-fields" : undefined}
        value={value}
        onInput={(input) => onInput(input.currentTarget.value)}
      />
      <Fault place={fault} id={`${id}-fault`} />
    </div>
  );
}

function Fault({ place, id }: { place: ProblemPlace | undefined; id?: string }) {
  if (!place) return null;
  return (
    <span class="bad s said fault" id={id} data-testid="field-fault">
      {words.errors.required(inField(place))}
      <Excerpt place={place} />
    </span>
  );
}

interface YamlFieldProps {
  readonly text: string;
  readonly errors: readonly ProblemPlace[];
  onChange(text: string): void;
}

function YamlField({ text, errors, onChange }: YamlFieldProps) {
  return (
    <>
      <textarea
        class="editor small"
        rows={11}
        spellcheck={false}
        aria-label={makeWords.yamlLabel}
        data-testid="metric-yaml"
        aria-invalid={errors.length > 0}
        aria-describedby="metric-yaml-faults"
        value={text}
        onInput={(input) => onChange(input.currentTarget.value)}
      />
      <div id="metric-yaml-faults">
        {errors.map((place) => (
          <p key={place.pointer} class="bad s said" data-testid="field-fault">
            {place.pointer && <code>{place.pointer}</code>} {words.errors.required(place)}
            <Excerpt place={place} />
          </p>
        ))}
      </div>
    </>
  );
}
