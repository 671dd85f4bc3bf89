/** Somebody else was faster: what is asked before either text is lost. */
import { useState } from "preact/hooks";
import type { Conflict, Stored } from "../api/stored";
import { conflictWords as said } from "../messages.conflict.en";
import { Modal } from "./modal";
import { Note } from "./notes";

interface ConflictedProps {
  readonly kind: string;
  readonly conflict: Conflict | null;
  /** Goes on with theirs; one's own text is gone then. */
  take(theirs: Stored): void;
  /** Goes on with one's own text, on top of what is stored now. */
  keep(): void;
}

/** Told, with theirs a click away. */
export function Conflicted({ kind, conflict, take, keep }: ConflictedProps) {
  const [shown, setShown] = useState(false);
  if (!conflict) return null;
  const { theirs } = conflict;
  // Shut first: this stays on the page, and the next conflict must not open by itself.
  const choose = (choice: () => void) => {
    setShown(false);
    choice();
  };
  return (
    <Note tone="warn" icon="alert">
      <b>{said.title(kind)}</b>
      <p>{theirs ? said.text(theirs.body.version, theirs.body.by) : said.gone(kind)}</p>
      <div class="row wrap note-acts" data-testid="conflict">
        {theirs && (
          <button type="button" class="btn sm" onClick={() => setShown(true)}>
            {said.show}
          </button>
        )}
        <button type="button" class="btn sm" title={said.keepWhy} onClick={keep}>
          {theirs ? said.keep : said.again(kind)}
        </button>
      </div>
      {shown && theirs && (
        <Modal title={said.theirs(theirs.body.version)} close={() => setShown(false)} wide>
          <div class="stack">
            <pre class="code">{theirs.body.text}</pre>
            <p class="t2">{said.keepWhy}</p>
            <div class="row wrap">
              <button type="button" class="btn go" onClick={() => choose(() => take(theirs))}>
                {said.take}
              </button>
              <button type="button" class="btn" onClick={() => choose(keep)}>
                {said.keep}
              </button>
            </div>
          </div>
        </Modal>
      )}
    </Note>
  );
}
