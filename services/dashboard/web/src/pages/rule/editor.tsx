/** The editor of one rule: bar, sentence or text, chart, and what the last day says of it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Metric } from "../../api/shapes";
import { Note, Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import type { Frame } from "../../lib/limit";
import { navigate } from "../../lib/router";
import {
  type Field,
  MODES,
  type RuleForm,
  readRule,
  sorted,
  testedText,
  writeRule,
} from "../../lib/rule-text";
import { may } from "../../lib/session";
import type { Problem, ProblemPlace } from "../../live/wire";
import { words as allWords } from "../../messages.en";
import { ruleWords as words } from "../../messages.rules.en";
import { useValidation } from "../definitions/verdict";
import { Conflicted, Delete, Leaving } from "./asked";
import { LimitChart } from "./limit-chart";
import { Outcome } from "./outcome";
import { toRules } from "./places";
import { Sentence } from "./sentence";
import { Strips } from "./strips";
import { useBacktest } from "./use-backtest";
import { type Stored, useRule, type Writing } from "./use-rule";

interface EditorProps {
  readonly first: Stored | null;
  readonly beginning: string;
  readonly metrics: readonly Metric[];
  readonly channels: readonly string[] | null;
}

/** One rule; the text is the truth, and the form a view of it. */
export function Editor({ first, beginning, metrics, channels }: EditorProps) {
  const rule = useRule(first, beginning);
  const [asText, setAsText] = useState(false);
  const form = useMemo(() => readRule(rule.text), [rule.text]);
  const name = first?.body.name ?? "";
  const checked = useValidation({ kind: "rule", name, text: rule.text });
  const told = toldOf(rule.problem, checked, form);
  const touched = useRef(first !== null);
  const page = useRef<HTMLFormElement>(null);
  // Who pressed the button hears why, and stands where it is mended.
  useEffect(() => {
    if (rule.problem) faultIn(page.current)?.focus();
  }, [rule.problem]);
  // The guard of unsaved changes is gone by now.
  useEffect(() => {
    if (rule.onward !== null) navigate(rule.onward);
  }, [rule.onward]);
  const change = (part: Partial<RuleForm>) => {
    if (!form) return;
    if ("low" in part || "high" in part || "side" in part) touched.current = true;
    rule.setText(writeRule(rule.text, { ...form, ...part }));
  };
  const proposed = useRef("");
  const propose = (limit: number) => {
    const about = form && [form.metric, form.aggregate, form.window, ...form.by].join();
    if (!form || touched.current || proposed.current === about) return;
    proposed.current = about ?? "";
    rule.propose(writeRule(rule.text, { ...form, high: String(limit) }));
  };
  const locked = !may("define");
  return (
    <form
      ref={page}
      class="rule-page"
      data-testid="rule-form"
      onSubmit={(submit) => {
        submit.preventDefault();
        rule.save();
      }}
    >
      <Bar
        rule={rule}
        name={name}
        form={form}
        asText={asText || !form}
        onView={setAsText}
        onMode={(mode) => change({ mode })}
      />
      <Conflicted rule={rule} />
      {told.alert && <Refused problem={told.alert} />}
      {rule.saved !== null && !rule.changed && (
        <Note tone="good" icon="ok">
          {words.saved(rule.saved)} {words.mode.why[form?.mode ?? ""]}
        </Note>
      )}
      <section class="panel rule-say">
        <div class="body">
          {asText || !form ? (
            <TextView rule={rule} plain={form !== null} errors={told.errors} locked={locked} />
          ) : (
            <Sentence
              form={form}
              metrics={metrics}
              channels={channels}
              faults={told.faults}
              isNew={first === null}
              locked={locked}
              onChange={change}
            />
          )}
        </div>
      </section>
      <Trial
        rule={rule}
        form={form}
        metric={metrics.find((one) => one.name === form?.metric)}
        where={whereOf(checked?.parsed)}
        locked={locked}
        onMove={(end, value) => change({ [end]: String(value) })}
        onSensible={propose}
      />
      <Leaving changed={rule.changed && !locked} />
    </form>
  );
}

/** Returns what to mend first: the first field that is wrong, or else the refusal itself. */
function faultIn(page: HTMLElement | null): HTMLElement | null {
  const first = page?.querySelector<HTMLElement>("[role=alert], .fault") ?? null;
  const field = first?.closest(".say-f")?.querySelector<HTMLElement>("input, select, button");
  return field ?? first;
}

interface Told {
  readonly errors: readonly ProblemPlace[];
  readonly faults: ReadonlyMap<Field, ProblemPlace>;
  /** What stands at no field. */
  readonly alert: Problem | null;
}

type Check = ReturnType<typeof useValidation>;

/** Sorts what is wrong; what is still to be filled in is wrong only once somebody wants to save. */
function toldOf(problem: Problem | null, checked: Check, form: RuleForm | null): Told {
  const found = problem?.errors ?? checked?.errors ?? [];
  const { faults, rest } = sorted(found);
  const open = new Set<Field>();
  if (problem === null && form) {
    if (form.name === "") open.add("name");
    if (form[form.side === "below" ? "low" : "high"] === "") open.add("limit");
  }
  const shown = new Map([...faults].filter(([field]) => !open.has(field)));
  const message =
    problem?.message ?? (checked && !checked.ok && !checked.old ? checked.message : "");
  const untold = rest.length > 0 || found.length === 0 || !form;
  if (!message || !untold) return { errors: found, faults: shown, alert: null };
  const [first] = rest;
  const said = first ? `${first.pointer} ${allWords.errors.required(first)}`.trim() : message;
  const code = problem?.code ?? checked?.code ?? "";
  const status = problem?.status ?? 422;
  return {
    errors: found,
    faults: shown,
    alert: { status, code, message: said, errors: rest.slice(1) },
  };
}

const whereOf = (parsed: unknown): readonly unknown[] => {
  const where = (parsed as { where?: unknown } | null | undefined)?.where;
  return Array.isArray(where) ? where : [];
};

interface BarProps {
  readonly rule: Writing;
  readonly name: string;
  readonly form: RuleForm | null;
  readonly asText: boolean;
  onView(asText: boolean): void;
  onMode(mode: string): void;
}

function Bar({ rule, name, form, asText, onView, onMode }: BarProps) {
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

interface TextViewProps {
  readonly rule: Writing;
  readonly plain: boolean;
  readonly errors: readonly ProblemPlace[];
  readonly locked: boolean;
}

function TextView({ rule, plain, errors, locked }: TextViewProps) {
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
          </p>
        ))}
      </div>
    </>
  );
}

interface TrialProps {
  readonly rule: Writing;
  readonly form: RuleForm | null;
  readonly metric: Metric | undefined;
  readonly where: readonly unknown[];
  readonly locked: boolean;
  onMove(end: "low" | "high", value: number): void;
  onSensible(limit: number): void;
}

/** The chart with its strips, and beside it what they say in numbers. */
function Trial({ rule, form, metric, ...props }: TrialProps) {
  const [frame, setFrame] = useState<Frame | null>(null);
  const lacks = form !== null && form.low === "" && form.high === "";
  const tested = useBacktest(lacks ? null : testedText(rule.text));
  const wait = waitOf(lacks, tested.problem);
  const told = (next: Frame) => {
    if (JSON.stringify(next) !== JSON.stringify(frame)) setFrame(next);
  };
  return (
    <div class="grid rule-trial">
      <section class="panel c8">
        <header>
          <h2>{words.chart.title}</h2>
        </header>
        <div class="body">
          {form && metric ? (
            <LimitChart form={form} metric={metric} frame={frame} onFrame={told} {...props} />
          ) : (
            <p class="t2">{words.chart.waits}</p>
          )}
          {tested.answer && !lacks && (
            <Strips answer={tested.answer} frame={frame} old={tested.old} />
          )}
        </div>
      </section>
      <Outcome tested={tested} wait={wait} />
    </div>
  );
}

/** Returns why nothing is asked, or was not answered; what stands at a field is not said again. */
function waitOf(lacks: boolean, problem: Problem | null): string | null {
  if (lacks) return words.test.waitsLimit;
  if (problem === null) return null;
  return problem.status === 422 ? words.test.waits : problem.message;
}
