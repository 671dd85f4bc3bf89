/** The button that ends the session. */
import { useState } from "preact/hooks";
import { problemOf } from "../api/client";
import { leaving } from "../lib/router";
import { session, signOut } from "../lib/session";
import type { Problem } from "../live/wire";
import { words } from "../messages.en";
import { Refused } from "./notes";
import { useOpen } from "./use-open";

/** Signs out, unless a page with something unsaved is not let go; says so where it is refused. */
export function SignOut({ done }: { done(): void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const open = useOpen();
  const leave = async () => {
    setBusy(true);
    setProblem(null);
    await signOut().then(
      // The menu may have been closed meanwhile, and another dialog be open by now.
      () => open.current && done(),
      (error: unknown) => setProblem(problemOf(error)),
    );
    setBusy(false);
  };
  // Whoever has signed out sees it until the menu closes; a refusal stays, whoever is there by then.
  if (!busy && !problem && !session.value?.signed_in) return null;
  return (
    <>
      {problem && <Refused problem={problem} />}
      <button
        type="button"
        class="btn quiet"
        aria-disabled={busy}
        onClick={() => !busy && leaving(leave)}
      >
        {words.settings.signOut}
      </button>
    </>
  );
}
