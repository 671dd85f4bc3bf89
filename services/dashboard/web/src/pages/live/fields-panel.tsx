/** The fields of the events that arrive, and what each is good for. */
import { Seg } from "../../components/seg";
import type { Field } from "../../lib/fields";
import { percent } from "../../lib/numbers";
import { may } from "../../lib/session";
import { words } from "../../messages.en";

interface FieldsPanelProps {
  readonly types: readonly string[];
  readonly type: string | null;
  readonly fields: readonly Field[];
  readonly events: number;
  readonly chosen: string | null;
  onType(type: string): void;
  onMake(field: Field | null): void;
}

/** The panel. */
export function FieldsPanel(props: FieldsPanelProps) {
  const { types, type, fields, events } = props;
  const head = words.live.head;
  return (
    <section class="panel" aria-label={words.live.fields}>
      <header>
        <h2>{type ?? words.live.fields}</h2>
        <span class="sub">
          {events > 0 ? words.live.fieldsOf(fields.length, events) : words.live.noFields}
        </span>
        <span class="grow" />
        {types.length > 1 && types.length <= 3 && (
          <Seg
            label={words.live.allTypes}
            value={type ?? ""}
            choices={types.map((value) => ({ value, text: value }))}
            onPick={props.onType}
          />
        )}
        {types.length > 3 && (
          <select
            class="sel"
            aria-label={words.live.allTypes}
            value={type ?? ""}
            onChange={(change) => props.onType(change.currentTarget.value)}
          >
            {types.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </header>
      {fields.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <section class="body flush scroll fields" tabIndex={0} aria-label={words.live.fieldTable}>
          <table class="t">
            <thead>
              <tr>
                <th>{head.field}</th>
                <th>{head.type}</th>
                <th>{head.filled}</th>
                <th>{head.values}</th>
                <th>
                  <span class="sr">{head.make}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {fields.map((field) => (
                <FieldRow
                  key={field.path}
                  field={field}
                  chosen={props.chosen?.includes(field.path) ?? false}
                  onMake={() => props.onMake(field)}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </section>
  );
}

interface FieldRowProps {
  readonly field: Field;
  readonly chosen: boolean;
  onMake(): void;
}

function FieldRow({ field, chosen, onMake }: FieldRowProps) {
  return (
    <tr class={chosen ? "chosen" : undefined} data-testid="field-row" data-field={field.path}>
      <td class="mono">{field.path}</td>
      <td class="t2">{words.live.types[field.type]}</td>
      <td>
        <span class="fill">
          <i style={{ width: `${field.filled * 100}%` }} />
        </span>
        {percent(Math.round(field.filled * 100) / 100)}
      </td>
      <td class="t2 values" title={field.values}>
        {field.values}
      </td>
      <td class="num">
        <button
          type="button"
          class={field.type === "number" ? "btn sm go" : "btn sm"}
          disabled={!may("define") || field.type === "list"}
          onClick={onMake}
        >
          {goodFor(field)}
        </button>
      </td>
    </tr>
  );
}

/** Returns what a field is good for in a metric. */
export function goodFor(field: Field): string {
  if (field.type === "number") return words.live.make.number;
  return field.distinct > 20 ? words.live.make.many : words.live.make.text;
}
