/** What is asked before something that was typed is lost. */
import { useEffect, useRef, useState } from "preact/hooks";
import { guardLeaving } from "../lib/router";
import { may, session } from "../lib/session";
import { words } from "../messages.en";
import { Modal } from "./modal";

/** Asks before a page with unsaved changes is left: by a link, by Back, by signing out, by closing it. */
export function Leaving({ changed }: { changed: boolean }) {
  const [asked, setAsked] = useState<{ leave(): void } | null>(null);
  // Who may store nothing loses nothing; what somebody wrote is theirs still when their session ends.
  const might = useRef(true);
  if (session.value?.signed_in) might.current = may("define");
  const held = changed && might.current;
  useEffect(() => {
    if (!held) return;
    const closing = (unload: BeforeUnloadEvent) => unload.preventDefault();
    addEventListener("beforeunload", closing);
    const undo = guardLeaving((leave) => {
      setAsked({ leave });
      return false;
    });
    return () => {
      removeEventListener("beforeunload", closing);
      undo();
    };
  }, [held]);
  if (asked === null) return null;
  const leave = () => {
    setAsked(null);
    asked.leave();
  };
  return <Question {...words.leave} close={() => setAsked(null)} act={leave} />;
}

interface QuestionProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly no: string;
  close(): void;
  act(): void;
}

/** A question with two answers, one of which does something. */
export function Question({ title, text, yes, no, close, act }: QuestionProps) {
  return (
    <Modal title={title} close={close}>
      <div class="stack">
        <p class="t2">{text}</p>
        <div class="row wrap">
          <button type="button" class="btn" onClick={close}>
            {no}
          </button>
          <button type="button" class="btn warning" data-testid="question-yes" onClick={act}>
            {yes}
          </button>
        </div>
      </div>
    </Modal>
  );
}
