/** A new metric while it is written, as fields or as text: nothing that was typed goes unasked. */
import { useState } from "preact/hooks";
import { type Draft, isStillIn, typedOf, yamlOf } from "../../lib/draft";

/** Follows what is written from what is offered: until something is chosen or typed, it is that. */
export function useWriting(offered: Draft) {
  const [own, setOwn] = useState<Draft | null>(null);
  /** The text, while it is that which is written. */
  const [yaml, setYaml] = useState<string | null>(null);
  /** What stood there before anything was typed; null: nothing was. */
  const [begun, setBegun] = useState<Draft | null>(null);
  const [asked, setAsked] = useState<{ act(): void } | null>(null);
  const draft = own ?? offered;
  const text = yaml ?? yamlOf(draft);
  /** Takes what was typed: what was suggested is no loss. */
  const typing =
    <T>(change: (to: T) => void) =>
    (value: T) => {
      setBegun(begun ?? draft);
      change(value);
    };
  const typed = begun === null ? [] : typedOf(begun, draft);
  const hasText = begun !== null && yaml !== null && yaml !== yamlOf(draft);
  const ask = (isLost: boolean, act: () => void) => (isLost ? setAsked({ act }) : act());
  return {
    ...{ draft, yaml, text, asked, hasOwn: own !== null },
    /** Whether something was typed that is lost with the page. */
    isUnsaved: begun !== null && text !== yamlOf(begun),
    write: typing(setOwn),
    writeText: typing(setYaml),
    asText: () => setYaml(text),
    /** Shows the fields again: they hold nothing of what was typed into the text. */
    asFields: () => ask(hasText, () => setYaml(null)),
    /** Takes a draft in place of what is there. */
    take: (next: Draft) =>
      ask(hasText || typed.some((field) => !isStillIn(next, draft, field)), () => {
        setYaml(null);
        setOwn(next);
        if (!typed.some((field) => isStillIn(next, draft, field))) setBegun(null);
      }),
    /** Answers what is asked before something is lost. */
    decide: (yes: boolean) => {
      setAsked(null);
      if (yes) asked?.act();
    },
  };
}

export type Writing = ReturnType<typeof useWriting>;
