/** One definition as text: checked while it is written, saved as a new version. */
import { useEffect, useState } from "preact/hooks";
import { call, problemOf, type Versioned } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { AllowedLateness } from "../../components/allowed-lateness";
import { type PageProps, useTitle } from "../../components/lazy";
import { Leaving } from "../../components/leaving";
import { Note, Refused } from "../../components/notes";
import { may, session } from "../../lib/session";
import type { Problem } from "../../live/wire";
import { words } from "../../messages.en";
import { useValidation, Verdict } from "./verdict";

export default function DefinitionPage({ names }: PageProps) {
  const kind = names.get("kind") ?? "";
  const name = names.get("name") ?? "";
  useTitle(name);
  const path = `/definitions/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`;
  const ready = session.value?.signed_in ?? false;
  const [stored, setStored] = useState<Versioned<Definition> | null>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saved, setSaved] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  const take = (found: Versioned<Definition>) => {
    setStored(found);
    setText(found.body.text);
    setProblem(null);
  };
  const load = () =>
    call<Definition>({ method: "GET", path }).then(take, (e: unknown) => setProblem(problemOf(e)));
  // read anew for another definition
  useEffect(() => {
    if (ready) load();
  }, [path, ready]);
  const save = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    const headers = { "if-match": stored?.etag ?? "" };
    await call<Definition>({ method: "PUT", path, body: { text }, headers }).then(
      (done) => {
        setStored(done);
        // What was typed meanwhile stays, as a change of what is stored now.
        setText((now) => (now === text ? done.body.text : now));
        setSaved(done.body.version);
      },
      (e: unknown) => setProblem(problemOf(e)),
    );
    setBusy(false);
  };
  const changed = stored !== null && text !== stored.body.text;
  const conflict = problem?.code === "version_conflict";
  return (
    <>
      <div class="bar">
        <h1 class="mono name">{name}</h1>
        <span class="chip">{kind}</span>
        {stored && <span class="chip">{words.definitions.version(stored.body.version)}</span>}
        <span class="grow" />
        {may("define") && (
          <button
            type="button"
            class="btn go"
            disabled={!changed}
            aria-disabled={busy}
            onClick={save}
          >
            {busy ? words.definitions.saving : words.definitions.save}
          </button>
        )}
      </div>
      {problem && <Refused problem={problem} {...(conflict && { retry: load })} />}
      {conflict && (
        <Note tone="warn" icon="alert">
          {words.definitions.conflict}
        </Note>
      )}
      {saved !== null && !changed && !problem && (
        <Note tone="good" icon="ok">
          {words.definitions.saved(saved)}
        </Note>
      )}
      {stored && (
        <div class="grid">
          <section class="panel c8">
            <textarea
              class="editor"
              spellcheck={false}
              aria-label={words.definitions.text}
              readOnly={!may("define")}
              value={text}
              onInput={(input) => setText(input.currentTarget.value)}
            />
          </section>
          <section class="panel c4">
            <header>
              <h2>{words.definitions.check}</h2>
            </header>
            <div class="body">
              {may("define") && <Checked kind={kind} name={name} text={text} />}
            </div>
          </section>
        </div>
      )}
      <Leaving changed={changed && may("define")} />
    </>
  );
}

function Checked({ kind, name, text }: { kind: string; name: string; text: string }) {
  const validation = useValidation({ kind, name, text });
  return (
    <>
      <Verdict validation={validation} />
      {kind === "metric" && <AllowedLateness text={validation?.ok ? text : null} />}
    </>
  );
}
