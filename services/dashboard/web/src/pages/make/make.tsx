/** A new metric, on a page of its own. */
import { useState } from "preact/hooks";
import { useTitle } from "../../components/lazy";
import { type Draft, EMPTY_DRAFT, nameFor } from "../../lib/draft";
import { current } from "../../lib/router";
import { metricWords } from "../../messages.metrics.en";
import { MetricForm } from "./form";

/** Returns the draft that an address asks for: a type, maybe a field of it. */
export function draftFrom(params: URLSearchParams): Draft {
  const type = params.get("type") ?? "";
  const value = params.get("value") ?? "";
  const by = params.get("by") ?? "";
  return {
    ...EMPTY_DRAFT,
    type,
    value,
    by,
    name: type ? nameFor(type, value || by) : "",
    aggregates: value ? ["count", "avg", "p95"] : EMPTY_DRAFT.aggregates,
  };
}

export default function Make() {
  useTitle(metricWords.make.title);
  const [draft, setDraft] = useState(() => draftFrom(current.value.params));
  return (
    <>
      <div class="bar">
        <h1>{metricWords.make.title}</h1>
        <span class="sub hide-s">{metricWords.make.starts}</span>
      </div>
      <MetricForm draft={draft} onChange={setDraft} fields={[]} />
    </>
  );
}
