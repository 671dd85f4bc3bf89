/** A rule on trial: the chart with its strips, and beside it what they say in numbers. */
import { useState } from "preact/hooks";
import type { Metric } from "../../api/shapes";
import type { Frame } from "../../lib/limit";
import { lacksLimit, type RuleForm, testedText } from "../../lib/rule-text";
import { ruleWords as words } from "../../messages.rules.en";
import { LimitChart } from "./limit-chart";
import { Outcome } from "./outcome";
import { Strips } from "./strips";
import { Sweep } from "./sweep";
import { waitOf } from "./told";
import { useBacktest } from "./use-backtest";
import type { Writing } from "./use-rule";

interface TrialProps {
  readonly rule: Writing;
  readonly form: RuleForm | null;
  readonly metric: Metric | undefined;
  readonly where: readonly unknown[];
  /** Of the number that is watched. */
  readonly unit: string;
  readonly locked: boolean;
  onTake(change: Partial<RuleForm>): void;
  onMove(end: "low" | "high", value: number): void;
  onSensible(limit: number): void;
}

/** The chart with its strips, and beside it what they say in numbers. */
export default function Trial({ rule, form, metric, unit, onTake, ...props }: TrialProps) {
  const [frame, setFrame] = useState<Frame | null>(null);
  const lacks = form !== null && lacksLimit(form);
  const tested = useBacktest(testedText(rule.text));
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
      <Outcome tested={tested} wait={wait}>
        {form && tested.answer && (
          <Sweep
            sweep={tested.answer.sweep}
            form={form}
            unit={unit}
            locked={props.locked}
            onTake={onTake}
          />
        )}
      </Outcome>
    </div>
  );
}
