/** One definition as text: checked while it is written, saved as a new version. */
import { pathOf } from "../../api/stored";
import { AllowedLateness } from "../../components/allowed-lateness";
import { Conflicted } from "../../components/conflicted";
import { type PageProps, useTitle } from "../../components/lazy";
import { Leaving } from "../../components/leaving";
import { Note, Refused } from "../../components/notes";
import { may, session } from "../../lib/session";
import { words } from "../../messages.en";
import { useDefinition } from "./use-definition";
import { useValidation, Verdict } from "./verdict";

export default function DefinitionPage({ names }: PageProps) {
  const kind = names.get("kind") ?? "";
  const name = names.get("name") ?? "";
  useTitle(name);
  const written = useDefinition(pathOf(kind, name), session.value?.signed_in ?? false);
  const { stored, text, problem, conflict, saved, busy, changed } = written;
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
            onClick={written.save}
          >
            {busy ? words.definitions.saving : words.definitions.save}
          </button>
        )}
      </div>
      {problem && <Refused problem={problem} {...(text === null && { retry: written.load })} />}
      <Conflicted kind={kind} conflict={conflict} take={written.take} keep={written.keep} />
      {saved !== null && !changed && !problem && (
        <Note tone="good" icon="ok">
          {words.definitions.saved(saved)}
        </Note>
      )}
      {text !== null && (
        <div class="grid">
          <section class="panel c8">
            <textarea
              class="editor"
              spellcheck={false}
              aria-label={words.definitions.text}
              readOnly={!may("define")}
              value={text}
              onInput={(input) => written.setText(input.currentTarget.value)}
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
      <Leaving changed={changed} />
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
