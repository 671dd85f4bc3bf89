/** The editor of one rule: bar, sentence or text, chart, and what the last day says of it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Metric } from "../../api/shapes";
import type { Stored } from "../../api/stored";
import { Conflicted } from "../../components/conflicted";
import { lazy } from "../../components/lazy";
import { Leaving } from "../../components/leaving";
import { Note, Refused } from "../../components/notes";
import { rules, useReader } from "../../lib/alerts";
import { unitOf } from "../../lib/numbers";
import { guarded, navigate } from "../../lib/router";
import { readRule, testedText } from "../../lib/rule-text";
import { may } from "../../lib/session";
import { isSignal } from "../../lib/signals";
import { isSick, LOOKS } from "../../lib/standing";
import { alertWords } from "../../messages.alerts.en";
import { ruleWords as words } from "../../messages.rules.en";
import { useValidation } from "../definitions/verdict";
import { Bar } from "./bar";
import { Sentence } from "./sentence";
import { TextView } from "./text-view";
import { toldOf, whereOf } from "./told";
import { useForm } from "./use-form";
import { useRule } from "./use-rule";

// What a rule is written with comes first; not every rule has both.
const Trial = lazy(() => import("./trial"));
const Message = lazy(() => import("./message"));
const Standing = lazy(() => import("./standing"));

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
  const { form, change, propose } = useForm(rule, first === null);
  // A new rule is one no more once it is stored, though its page stays while something is typed.
  const stored = first ?? rule.stored;
  const name = stored?.body.name ?? "";
  const checked = useValidation({ kind: "rule", name, text: rule.text });
  const told = toldOf(rule.problem, checked, asText ? null : form);
  // A text that the form cannot show is drawn as the server reads it.
  const seen = useMemo(
    () => form ?? (checked?.parsed ? readRule(JSON.stringify(checked.parsed)) : null),
    [form, checked?.parsed],
  );
  const page = useRef<HTMLFormElement>(null);
  // Who pressed the button hears why, and stands where it is mended.
  useEffect(() => {
    if (rule.problem) faultIn(page.current)?.focus();
  }, [rule.problem]);
  // As soon as the guard of unsaved changes is gone.
  const onward = guarded.value ? null : rule.onward;
  useEffect(() => {
    if (onward !== null) navigate(onward);
  }, [onward]);
  const locked = !may("define");
  const now = useReader(rules).items?.find((one) => one.name === name) ?? null;
  const metric = metrics.find((one) => one.name === seen?.metric);
  const unit = isSignal(seen?.metric ?? "")
    ? (now?.unit ?? "")
    : unitOf(seen?.aggregate ?? "", metric?.unit ?? null);
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
      <Conflicted kind="rule" conflict={rule.conflict} take={rule.take} keep={rule.keep} />
      {told.alert && <Refused problem={told.alert} />}
      {now && isSick(now.health) && (
        <Note tone={now.health === "error" ? "bad" : "warn"} icon={LOOKS[now.health][0]}>
          <b>{alertWords.states[now.health]}.</b> {now.why}
        </Note>
      )}
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
              unit={unit}
              faults={told.faults}
              isNew={stored === null}
              locked={locked}
              onChange={change}
            />
          )}
        </div>
      </section>
      {!isSignal(seen?.metric ?? "") && (
        <Trial
          rule={rule}
          form={seen}
          metric={metric}
          where={whereOf(checked?.parsed)}
          unit={unit}
          locked={locked || !form}
          onTake={change}
          onMove={(end, value) => change({ [end]: String(value) })}
          onSensible={propose}
        />
      )}
      <Message
        text={told.errors.length > 0 ? null : testedText(rule.text)}
        channels={(seen?.channels ?? []).filter((one) => channels?.includes(one))}
      />
      {now && <Standing rule={now} />}
      <Leaving changed={rule.changed} />
    </form>
  );
}

/** Returns what to mend first: the first field that is wrong, or else the refusal itself. */
function faultIn(page: HTMLElement | null): HTMLElement | null {
  const first = page?.querySelector<HTMLElement>("[role=alert], .fault") ?? null;
  const field = first?.closest(".say-f")?.querySelector<HTMLElement>("input, select, button");
  return field ?? first;
}
