/** What the page asks before something is lost: a conflict, deleting. */
import { useState } from "preact/hooks";
import { Question } from "../../components/leaving";
import { Modal } from "../../components/modal";
import { Note } from "../../components/notes";
import { ruleWords as words } from "../../messages.rules.en";
import type { Writing } from "./use-rule";

/** Somebody else was faster: told, with theirs a click away. */
export function Conflicted({ rule }: { rule: Writing }) {
  const [shown, setShown] = useState(false);
  const { conflict } = rule;
  if (!conflict) return null;
  const { theirs } = conflict;
  const said = words.conflict;
  // Shut first: this stays on the page, and the next conflict must not open by itself.
  const choose = (choice: () => void) => {
    setShown(false);
    choice();
  };
  return (
    <Note tone="warn" icon="alert">
      <b>{said.title}</b>
      <p>{theirs ? said.text(theirs.body.version, theirs.body.by) : said.gone}</p>
      <div class="row wrap note-acts" data-testid="conflict">
        {theirs && (
          <button type="button" class="btn sm" onClick={() => setShown(true)}>
            {said.show}
          </button>
        )}
        <button type="button" class="btn sm" title={said.keepWhy} onClick={rule.keep}>
          {theirs ? said.keep : said.again}
        </button>
      </div>
      {shown && theirs && (
        <Modal title={said.theirs(theirs.body.version)} close={() => setShown(false)} wide>
          <div class="stack">
            <pre class="code">{theirs.body.text}</pre>
            <p class="t2">{said.keepWhy}</p>
            <div class="row wrap">
              <button type="button" class="btn go" onClick={() => choose(() => rule.take(theirs))}>
                {said.take}
              </button>
              <button type="button" class="btn" onClick={() => choose(rule.keep)}>
                {said.keep}
              </button>
            </div>
          </div>
        </Modal>
      )}
    </Note>
  );
}

/** The button that deletes, and what it asks. */
export function Delete({ rule, name }: { rule: Writing; name: string }) {
  const [asks, setAsks] = useState(false);
  const said = words.remove;
  return (
    <>
      <button type="button" class="btn" data-testid="rule-delete" onClick={() => setAsks(true)}>
        {said.button}
      </button>
      {asks && (
        <Question
          {...said}
          title={said.title(name)}
          close={() => setAsks(false)}
          act={() => {
            setAsks(false);
            rule.remove();
          }}
        />
      )}
    </>
  );
}
