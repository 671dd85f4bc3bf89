/** One rule while it is written: its text, what is stored of it, saving and deleting. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { type Conflict, conflictOn, madeFrom, pathOf, type Stored } from "../../api/stored";
import { nameIn } from "../../lib/rule-text";
import { to } from "../../lib/view";
import type { Problem } from "../../live/wire";
import { words as allWords } from "../../messages.en";
import { ruleWords as words } from "../../messages.rules.en";
import { toRules } from "./places";

/** Answers a text that the server does not take. */
const OF_TEXT = 422;

/** The new rule whose own page is gone to: it says that it was saved. */
let made: string | null = null;

/** Follows one rule from its first text to what is stored. */
export function useRule(first: Stored | null, beginning: string) {
  const [stored, setStored] = useState(first);
  const [base, setBase] = useState(first?.body.text ?? beginning);
  const [text, setText] = useState(base);
  const newest = useRef(text);
  newest.current = text;
  const [problem, setProblem] = useState<Problem | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [busy, setBusy] = useState(false);
  const [saved, setSaved] = useState(first && first.body.name === made ? first.body.version : null);
  const [gone, setGone] = useState(false);
  useEffect(() => {
    made = null;
  }, []);
  // A refusal is of the text that was sent; a changed one has not been refused.
  useEffect(() => setProblem(null), [text]);

  const take = (found: Stored) => {
    setStored(found);
    setBase(found.body.text);
    setText(found.body.text);
    setConflict(null);
    setProblem(null);
  };
  const refused = async (error: unknown, name: string) => {
    const told = problemOf(error);
    const isOld = told.status === OF_TEXT && newest.current !== text;
    if (told.code === "version_conflict" && stored !== null) {
      await conflictOn(pathOf("rule", name)).then(setConflict, (unread: unknown) =>
        setProblem(problemOf(unread)),
      );
    } else if (!isOld) setProblem(stored === null ? takenOf(told, name) : told);
    setBusy(false);
  };
  const send = async (what: () => Promise<void>, name: string) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    setConflict(null);
    setSaved(null);
    await what().catch((error: unknown) => refused(error, name));
  };
  const save = () => {
    const name = stored?.body.name ?? nameIn(text);
    if (name === "") return setProblem(unnamed());
    return send(async () => {
      const done = await call<Definition>({
        method: "PUT",
        path: pathOf("rule", name),
        body: { text },
        headers: madeFrom(stored),
      });
      setBusy(false);
      setStored(done);
      setBase(done.body.text);
      // What was typed meanwhile stays, as a change of what is stored now.
      setText((now) => (now === text ? done.body.text : now));
      setSaved(done.body.version);
    }, name);
  };
  const remove = () => {
    if (stored === null) return;
    const { name } = stored.body;
    return send(async () => {
      await call({ method: "DELETE", path: pathOf("rule", name), headers: madeFrom(stored) });
      setBase(newest.current);
      setGone(true);
    }, name);
  };
  /** Goes on with the own text, on top of what is stored now. */
  const keep = () => {
    setStored(conflict?.theirs ?? null);
    setConflict(null);
  };
  /** Changes the text as a proposal: where nothing was changed yet, nothing is lost. */
  const propose = (next: string) => {
    if (text === base) setBase(next);
    setText(next);
  };
  const own = first === null && stored !== null ? stored.body.name : null;
  const onward = gone ? toRules() : own !== null && text === base ? to(`/rules/${own}`) : null;
  useEffect(() => {
    if (onward !== null && !gone) made = own;
  }, [onward]);
  return {
    ...{ text, stored, problem, conflict, busy, saved, changed: text !== base },
    ...{ setText, propose, save, remove, take, keep, discard: () => setText(base) },
    /**
     * Where to go on: a rule that was new has an address of its own now, a deleted one none. Not
     * while something is typed: it would be left behind.
     */
    onward,
  };
}

export type Writing = ReturnType<typeof useRule>;

function unnamed(): Problem {
  return named({ required: words.missing, got: "", mend: "" });
}

function takenOf(problem: Problem, name: string): Problem {
  if (problem.code !== "version_conflict") return problem;
  return named({ required: words.free, got: name, mend: words.other });
}

function named(what: { required: string; got: string; mend: string }): Problem {
  const place = { pointer: "/name", ...what };
  const message = `/name ${allWords.errors.required(place)}`;
  return { status: 422, code: "definition_invalid", message, errors: [place] };
}
