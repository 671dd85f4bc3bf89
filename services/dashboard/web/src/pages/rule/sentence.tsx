/** The rule as a sentence of fields. */
import type { Metric } from "../../api/shapes";
import {
  type Field,
  onSide,
  type RuleForm,
  SEVERITIES,
  SIDES,
  type Side,
} from "../../lib/rule-text";
import { isSignal, nounOf } from "../../lib/signals";
import { lengthOf, lengthWords } from "../../lib/time";
import type { ProblemPlace } from "../../live/wire";
import { ruleWords as words } from "../../messages.rules.en";
import { windowsFor } from "../metric/choice";
import { Channels } from "./channels";
import { type Choice, Say, Select, Text } from "./fields";
import { numbersOf, usual } from "./places";
import { DAY_MS } from "./use-backtest";

const say = words.say;

export type Faults = ReadonlyMap<Field, ProblemPlace>;

interface SentenceProps {
  readonly form: RuleForm;
  readonly metrics: readonly Metric[];
  /** Names of channels; null while they are not known. */
  readonly channels: readonly string[] | null;
  /** Of the number that is watched. */
  readonly unit: string;
  readonly faults: Faults;
  readonly isNew: boolean;
  readonly locked: boolean;
  onChange(change: Partial<RuleForm>): void;
}

/** All fields; what is wrong stands below its field. */
export function Sentence(props: SentenceProps) {
  const { form, faults, onChange, isNew, locked } = props;
  return (
    <fieldset class="say" disabled={locked} aria-label={say.label}>
      {isNew && (
        <Say id="name" text={say.name} fault={faults.get("name")}>
          <Text
            id="name"
            wide
            value={form.name}
            wrong={faults.has("name")}
            onInput={(name) => onChange({ name })}
          />
        </Say>
      )}
      {isNew && <span class="say-end" />}
      {isSignal(form.metric) ? <Signal metric={form.metric} /> : <What {...props} />}
      <Limit {...props} />
      <Back {...props} />
      <span class="say-end" />
      {!isSignal(form.metric) && <Doubts {...props} />}
      <Say id="severity" text={say.severity} fault={faults.get("severity")}>
        <Select
          id="severity"
          value={form.severity}
          choices={SEVERITIES.map((one) => [one, say.severities[one] ?? one])}
          onPick={(severity) => onChange({ severity })}
        />
      </Say>
      <Channels
        chosen={form.channels}
        known={props.channels}
        everybody={isSignal(form.metric)}
        fault={faults.get("channels")}
        onChange={(channels) => onChange({ channels })}
      />
    </fieldset>
  );
}

/** A signal has one number, which is read at this moment: there is nothing to choose. */
function Signal({ metric }: { metric: string }) {
  return (
    <span class="say-word">
      <span class="t2">{say.when}</span> <b>{nounOf({ metric, aggregate: "" })}</b>
    </span>
  );
}

/** Which number, over which windows, of which series. */
function What({ form, metrics, faults, onChange }: SentenceProps) {
  const metric = metrics.find((one) => one.name === form.metric);
  const windows = windowsFor(metric?.resolution_ms ?? 1_000, DAY_MS);
  return (
    <>
      <Say id="metric" text={say.when} fault={faults.get("metric")}>
        <Select
          id="metric"
          value={form.metric}
          choices={metrics.map(({ name }) => [name, name])}
          onPick={(name) => onChange(ofMetric(form, metrics, name))}
        />
      </Say>
      <Say id="aggregate" text={say.aggregate} quiet fault={faults.get("aggregate")}>
        <Select
          id="aggregate"
          value={form.aggregate}
          choices={numbersOf(metric?.aggregates ?? []).map((one) => [one, one])}
          onPick={(aggregate) => onChange({ aggregate })}
        />
      </Say>
      <Say id="window" text={say.over} fault={faults.get("window")}>
        <Select
          id="window"
          value={form.window}
          choices={windows.map((one) => [one, lengthWords(lengthOf(one) ?? 0)])}
          onPick={(window) => onChange({ window })}
        />
      </Say>
      <Say id="by" text={say.forEach} fault={faults.get("by")}>
        <Select
          id="by"
          value={form.by.join(",")}
          choices={groupings(metric?.by ?? [])}
          onPick={(by) => onChange({ by: by === "" ? [] : by.split(",") })}
        />
      </Say>
      {form.where === null ? (
        <span class="t2 say-word">{say.whereList}</span>
      ) : (
        <Say id="where" text={say.where} fault={faults.get("where")}>
          <Text
            id="where"
            wide
            hint={say.whereHint}
            value={form.where}
            onInput={(where) => onChange({ where })}
            wrong={faults.has("where")}
          />
        </Say>
      )}
    </>
  );
}

/** What another metric lacks is not carried over to it. */
function ofMetric(form: RuleForm, metrics: readonly Metric[], name: string): Partial<RuleForm> {
  const metric = metrics.find((one) => one.name === name);
  if (!metric) return { metric: name };
  const { aggregates, by } = metric;
  return {
    metric: name,
    aggregate: aggregates.includes(form.aggregate) ? form.aggregate : usual(aggregates),
    by: form.by.filter((one) => by.includes(one)),
  };
}

function groupings(by: readonly string[]): readonly Choice[] {
  const each = by.map((one): Choice => [one, one]);
  const all: Choice[] = by.length > 1 ? [[by.join(","), by.join(", ")]] : [];
  return [["", say.together], ...each, ...all];
}

/** Which side, where, for how long. */
function Limit({ form, unit, faults, onChange }: SentenceProps) {
  const fault = faults.get("limit");
  const ends = form.side === "outside" ? (["low", "high"] as const) : [endOf(form.side)];
  return (
    <>
      <Say id="side" text={say.is}>
        <Select
          id="side"
          value={form.side}
          choices={SIDES.map((side) => [side, say.sides[side]])}
          onPick={(side) => onChange(onSide(form, side as Side))}
        />
      </Say>
      {ends.map((end, nth) => (
        <Say
          key={end}
          id={`limit-${end}`}
          text={ends.length === 1 ? say.limit : end === "low" ? say.lowLimit : say.highLimit}
          quiet
          fault={nth === ends.length - 1 ? fault : undefined}
        >
          {nth > 0 && <span class="t2">{say.and}</span>}
          <Text
            id={`limit-${end}`}
            number
            class="limit"
            value={form[end]}
            wrong={fault !== undefined}
            onInput={(value) => onChange({ [end]: value })}
          />
          {nth === ends.length - 1 && unit && <span class="b bad">{unit}</span>}
        </Say>
      ))}
      <Say id="for" text={say.hold} fault={faults.get("hold")}>
        <Text
          id="for"
          hint={say.atOnce}
          value={form.hold}
          wrong={faults.has("hold")}
          onInput={(hold) => onChange({ hold })}
        />
      </Say>
      <span class="t2 say-word">
        → <b class="bad">{say.fire}</b>
      </span>
    </>
  );
}

const endOf = (side: Side): "low" | "high" => (side === "below" ? "low" : "high");
const BACKS = { low: "backLow", high: "backHigh" } as const;

/** Where it comes back to, for how long. */
function Back({ form, unit, faults, onChange }: SentenceProps) {
  const fault = faults.get("recover");
  const ends = form.side === "outside" ? (["low", "high"] as const) : [endOf(form.side)];
  return (
    <>
      {ends.map((end, nth) => (
        <Say
          key={end}
          id={`recover-${end}`}
          text={nth === 0 ? say.recover[form.side] : say.and}
          fault={nth === ends.length - 1 ? fault : undefined}
        >
          <Text
            id={`recover-${end}`}
            number
            hint={say.theLimit}
            label={ends.length === 1 ? undefined : end === "low" ? say.recoverLow : say.recoverHigh}
            value={form[BACKS[end]]}
            wrong={fault !== undefined}
            onInput={(value) => onChange({ [BACKS[end]]: value })}
          />
          {nth === ends.length - 1 && <span class="t2">{unit}</span>}
        </Say>
      ))}
      <Say id="recover-for" text={say.recoverFor} fault={faults.get("recoverFor")}>
        <Text
          id="recover-for"
          label={say.recoverForLabel}
          hint={say.atOnce}
          value={form.recoverFor}
          wrong={faults.has("recoverFor")}
          onInput={(recoverFor) => onChange({ recoverFor })}
        />
      </Say>
    </>
  );
}

/** What too few events and silence do. */
function Doubts({ form, faults, onChange }: SentenceProps) {
  return (
    <>
      <Say id="min-events" text={say.fewest} fault={faults.get("minEvents")}>
        <Text
          id="min-events"
          number
          short
          label={say.minEvents}
          hint={say.few(form.aggregate)}
          value={form.minEvents}
          wrong={faults.has("minEvents")}
          onInput={(minEvents) => onChange({ minEvents })}
        />
        <span class="t2">{say.events}</span>
      </Say>
      <Say id="silence" text={say.noData} fault={faults.get("silence")}>
        <Select
          id="silence"
          value={form.silence}
          choices={Object.entries(say.silence)}
          onPick={(silence) => onChange({ silence })}
        />
      </Say>
      <Say id="tell-after" text={say.tellAfter} fault={faults.get("tellAfter")}>
        <Text
          id="tell-after"
          short
          hint={say.tenMinutes}
          value={form.tellAfter}
          wrong={faults.has("tellAfter")}
          onInput={(tellAfter) => onChange({ tellAfter })}
        />
      </Say>
    </>
  );
}
