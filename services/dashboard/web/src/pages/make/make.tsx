/** A new metric, on a page of its own. */
import { useMemo } from "preact/hooks";
import { useTitle } from "../../components/lazy";
import { type Draft, EMPTY_DRAFT, nameFor } from "../../lib/draft";
import { current } from "../../lib/router";
import { makeWords } from "../../messages.make.en";
import { MetricForm } from "./form";
import { useWriting } from "./use-writing";

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
  useTitle(makeWords.title);
  const offered = useMemo(() => draftFrom(current.peek().params), []);
  const writing = useWriting(offered);
  return (
    <>
      <div class="bar">
        <h1>{makeWords.title}</h1>
        <span class="sub hide-s">{makeWords.starts}</span>
      </div>
      <MetricForm writing={writing} fields={[]} />
    </>
  );
}
