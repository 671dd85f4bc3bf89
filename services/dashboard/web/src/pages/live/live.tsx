/** First run and live tail: send an event, see it arrive, make a metric of it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Icon } from "../../components/icon";
import { type PageProps, useTitle } from "../../components/lazy";
import { type Draft, dimensionsOf, EMPTY_DRAFT, nameFor } from "../../lib/draft";
import { type Field, fieldsOf } from "../../lib/fields";
import { may } from "../../lib/session";
import { toPut } from "../../lib/view";
import { EMPTY_TAIL } from "../../live/tail";
import { words } from "../../messages.en";
import { MetricForm } from "../make/form";
import { useWriting } from "../make/use-writing";
import { Checks } from "./checks";
import { FieldsPanel } from "./fields-panel";
import { isUnfinished } from "./filter";
import { Send } from "./send";
import { TailPanel } from "./tail-panel";
import { useTail } from "./use-tail";

export default function LivePage(_: PageProps) {
  useTitle(words.live.title);
  const [filter, setFilter] = useState("");
  const [held, setHeld] = useState(false);
  const wanted = filter.trim();
  const all = useTail("", held);
  const filtered = useTail(wanted === "" || isUnfinished(wanted) ? null : wanted, held);
  // Fields, types and the newest event are those of all that arrives, whatever is shown.
  const rows = all.newest.rows;
  const types = useMemo(() => [...new Set(rows.map((row) => row.event.type))], [rows]);
  const [chosen, setChosen] = useState<string | null>(null);
  // What came first stays chosen: the page must not jump with every event.
  const first = types.at(-1) ?? null;
  useEffect(() => {
    if (chosen === null && first !== null) setChosen(first);
  }, [chosen, first]);
  const type = chosen ?? first;
  const events = useMemo(
    () => rows.map((row) => row.event).filter((event) => event.type === type),
    [rows, type],
  );
  const fields = useMemo(() => fieldsOf(events), [events]);
  const offered = useMemo(() => draftOf(type ?? "", null, null), [type]);
  const writing = useWriting(offered);
  const { draft, hasOwn } = writing;
  const make = (field: Field | null) =>
    writing.take(draftOf(type ?? "", field, hasOwn ? draft : null));
  return (
    <>
      <div class="bar">
        <h1>{words.live.title}</h1>
        <Steps at={hasOwn ? 1 : all.newest === EMPTY_TAIL ? 0 : 1} />
      </div>
      <div class="cols">
        <div class="stack">
          <Send newestMs={rows[0]?.event.received_ms ?? null} />
          <FieldsPanel
            types={types}
            type={type}
            fields={fields}
            events={events.length}
            chosen={draft.value || draft.by || null}
            onType={setChosen}
            onMake={make}
          />
          <Checks />
        </div>
        <div class="stack">
          <TailPanel
            tail={wanted === "" ? all : filtered}
            of={all.newest}
            held={held}
            filter={filter}
            onHold={setHeld}
            onFilter={setFilter}
          />
          {(hasOwn || type) && (
            <MetricForm writing={writing} fields={fields.map((field) => field.path)} />
          )}
        </div>
      </div>
    </>
  );
}

/** Returns the draft that a field suggests; a second text field joins the dimensions. */
export function draftOf(type: string, field: Field | null, before: Draft | null): Draft {
  const base: Draft = { ...EMPTY_DRAFT, type, name: nameFor(type, "") };
  if (field === null) return base;
  const going = before && before.type === type ? before : base;
  if (field.type === "number") {
    const aggregates = ["count", "avg", "sum", "p95"];
    return { ...going, value: field.path, name: nameFor(type, field.path), aggregates };
  }
  if (field.distinct > 20) {
    const aggregate = `distinct(${field.path})`;
    const aggregates = [...going.aggregates.filter((one) => one !== aggregate), aggregate];
    return { ...going, aggregates };
  }
  const known = dimensionsOf(going);
  const by = known.includes(field.path) ? known : [...known, field.path];
  return { ...going, by: by.join(", ") };
}

function Steps({ at }: { at: number }) {
  return (
    <ol class="steps">
      {words.live.steps.map((text, nth) => (
        <li
          key={text}
          class={nth < at ? "done" : nth === at ? "now" : undefined}
          aria-current={nth === at ? "step" : undefined}
        >
          <span class="n">{nth < at ? <Icon name="check" small /> : nth + 1}</span>
          {nth === 2 && may("define") ? <a href={toPut("/metrics")}>{text}</a> : text}
        </li>
      ))}
    </ol>
  );
}
