/** One definition while its text is written: what is stored of it, and saving. */
import { useEffect, useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { type Conflict, conflictOn, madeFrom, type Stored } from "../../api/stored";
import type { Problem } from "../../live/wire";

/** Follows a definition from what is read of it to what is stored; read once it is `ready`. */
export function useDefinition(path: string, ready: boolean) {
  // Null: others have deleted it, and it is to be stored anew.
  const [stored, setStored] = useState<Stored | null>(null);
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [saved, setSaved] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  const take = (found: Stored) => {
    setStored(found);
    setText(found.body.text);
    setConflict(null);
    setProblem(null);
  };
  const tell = (error: unknown) => setProblem(problemOf(error));
  const load = () => call<Definition>({ method: "GET", path }).then(take, tell);
  // Once: what was typed outlives the session, and is there when it goes on.
  useEffect(() => {
    if (ready && text === null) load();
  }, [path, ready]);
  const refused = async (error: unknown) => {
    if (problemOf(error).code !== "version_conflict") return tell(error);
    await conflictOn(path).then(setConflict, tell);
  };
  const save = async () => {
    if (busy || text === null) return;
    setBusy(true);
    setProblem(null);
    setConflict(null);
    const headers = madeFrom(stored);
    await call<Definition>({ method: "PUT", path, body: { text }, headers }).then((done) => {
      setStored(done);
      // What was typed meanwhile stays, as a change of what is stored now.
      setText((now) => (now === text ? done.body.text : now));
      setSaved(done.body.version);
    }, refused);
    setBusy(false);
  };
  /** Goes on with the own text, on top of what is stored now. */
  const keep = () => {
    setStored(conflict?.theirs ?? null);
    setConflict(null);
  };
  const changed = text !== null && text !== stored?.body.text;
  return { stored, text, problem, conflict, saved, busy, changed, setText, take, keep, save, load };
}
