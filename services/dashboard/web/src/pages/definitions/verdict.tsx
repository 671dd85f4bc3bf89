/** What the server's check says about a text, while it is written. */
import { useEffect, useState } from "preact/hooks";
import { post } from "../../api/client";
import type { Validation } from "../../api/shapes";
import { Excerpt } from "../../components/excerpt";
import { Icon } from "../../components/icon";
import { saidIn, unsaidOf } from "../../components/notes";
import type { Checked } from "../../lib/draft";
import { session } from "../../lib/session";
import { words } from "../../messages.en";

const PAUSE_MS = 250;

interface Draft {
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

/** Checks a draft a moment after the last change; null before the first answer. */
export function useValidation({ kind, name, text }: Draft): Checked | null {
  const [found, setFound] = useState<{ text: string; validation: Validation } | null>(null);
  const ready = session.value?.signed_in ?? false;
  // what could not be asked while nobody was signed in is asked once somebody is
  useEffect(() => {
    if (!ready) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const draft = { kind, ...(name && { name }), text };
      post<Validation>("/definitions/validate", draft, abort.signal).then(
        (validation) => setFound({ text, validation }),
        () => undefined,
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [kind, name, text, ready]);
  if (found === null) return null;
  // While a change is being checked, what was wrong stays; what was right is no longer known.
  return found.text === text ? found.validation : { ...found.validation, ok: false, old: true };
}

/** The check's words: each place with what it required, what came and the mend. */
export function Verdict({ validation }: { validation: Validation | null }) {
  if (validation === null) return null;
  if (validation.ok) {
    return (
      <p class="row good">
        <Icon name="ok" small />
        {words.definitions.checked}
      </p>
    );
  }
  return (
    <div class="said" role="status">
      <p class="row bad b">
        <Icon name="alert" small />
        {validation.message}
      </p>
      <Excerpt place={saidIn(validation.message ?? "", validation.errors)} />
      <ul>
        {unsaidOf(validation.message ?? "", validation.errors).map((place) => (
          <li key={place.pointer}>
            {place.pointer && <code>{place.pointer}</code>}{" "}
            <span class="t2">{words.errors.required(place)}</span>
            <Excerpt place={place} />
          </li>
        ))}
      </ul>
    </div>
  );
}
