/** A rule, new or stored: written as a sentence, tried on the last 24 hours, saved. */
import { useEffect, useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import { useLoad } from "../../api/load";
import type { Definition, Metric, Page } from "../../api/shapes";
import { pathOf, type Stored } from "../../api/stored";
import { type PageProps, useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { current } from "../../lib/router";
import { session } from "../../lib/session";
import { to } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { ruleWords as words } from "../../messages.rules.en";
import "../../styles/rule.css";
import { Editor } from "./editor";
import { beginningOf } from "./places";

export default function RulePage({ names }: PageProps) {
  const name = names.get("name") ?? null;
  const ready = session.value?.signed_in ?? false;
  const metrics = useLoad<Page<Metric>>(ready ? "/metrics" : null);
  const channels = useLoad<Page<Definition>>(ready ? "/definitions?kind=channel" : null);
  const { stored, problem, load } = useStored(ready ? name : null);
  useTitle(name ?? words.newTitle);
  const failed = problem ?? metrics.problem;
  const all = metrics.body?.items;
  if (failed && (!all || (name !== null && !stored))) {
    return (
      <>
        <h1 class="sr">{name ?? words.newTitle}</h1>
        <Refused problem={failed} retry={problem ? load : metrics.reload} />
      </>
    );
  }
  if (!all || (name !== null && !stored)) return <h1 class="sr">{name ?? words.newTitle}</h1>;
  if (name === null && all.length === 0) return <NoMetric />;
  return (
    <Editor
      first={stored}
      beginning={name === null ? beginningOf(current.value.params, all) : ""}
      metrics={all}
      channels={channels.body?.items.map((one) => one.name) ?? null}
    />
  );
}

function NoMetric() {
  return (
    <Empty icon="metric" title={words.noMetric}>
      <h1 class="sr">{words.newTitle}</h1>
      <span class="s">{words.noMetricHint}</span>
      <a class="btn" href={to("/metrics/new")}>
        {words.makeMetric}
      </a>
    </Empty>
  );
}

/** Reads a rule with its version, once: while it is written nothing changes below it. */
function useStored(name: string | null) {
  const [stored, setStored] = useState<Stored | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const load = () => {
    if (name === null) return;
    setProblem(null);
    call<Definition>({ method: "GET", path: pathOf("rule", name) }).then(
      setStored,
      (error: unknown) => setProblem(problemOf(error)),
    );
  };
  useEffect(load, [name]);
  return { stored, problem, load };
}
