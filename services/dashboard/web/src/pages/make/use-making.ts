/** Making a metric of what is written: sent once, told where it is refused, gone to once it is made. */
import { useEffect, useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { madeFrom, pathOf } from "../../api/stored";
import type { Checked } from "../../lib/draft";
import { guarded, navigate } from "../../lib/router";
import { to } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { refusalOf, unnamed } from "./told";

/** What was sent, and under which name. */
interface Sent {
  readonly name: string;
  readonly text: string;
}

/** Makes it of a text; `checked`: what the check says of it. */
export function useMaking(text: string, checked: Checked | null) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<Sent | null>(null);
  // A refusal is of the text that was sent; a changed one has not been refused.
  useEffect(() => setProblem(null), [text]);
  const isMade = made?.text === text;
  // What was made is no loss: as soon as it asks no more. Whoever has typed on is asked first, and
  // whoever has left meanwhile is not fetched back.
  const onward = made && !(isMade && guarded.value) ? to(`/m/${made.name}`) : null;
  useEffect(() => {
    if (onward !== null) navigate(onward);
  }, [onward]);
  const make = async (name: string) => {
    if (busy) return;
    if (name === "") {
      setProblem(unnamed(checked?.old ? [] : (checked?.errors ?? [])));
      return;
    }
    setBusy(true);
    setProblem(null);
    await call<Definition>({
      method: "PUT",
      path: pathOf("metric", name),
      body: { text },
      headers: madeFrom(null),
    }).then(
      () => setMade({ name, text }),
      (error: unknown) => setProblem(refusalOf(problemOf(error), name)),
    );
    setBusy(false);
  };
  return { problem, busy, isMade, make };
}
