/** What is typed into the tail's filter, and what is said where it lets nothing through. Pure. */
import type { TailFilter } from "../../live/wire";
import { words } from "../../messages.en";

/** Returns the filter that a text asks for: a type, a condition on a field, or any text. */
export function filterOf(text: string): TailFilter {
  const wanted = text.trim();
  if (wanted === "") return {};
  const condition = /^(data\.\S+?)\s*(!=|<=|>=|=|<|>)\s*(.+)$/.exec(wanted);
  if (condition) {
    const [, path = "", op = "=", value = ""] = condition;
    return { where: [[path, op, literal(value)]] };
  }
  return wanted.endsWith("*") ? { type: wanted } : { text: wanted };
}

function literal(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.replace(/^'(.*)'$/, "$1");
  }
}

/** Returns whether a text is a condition that is still being typed: no value, or an open quote. */
export function isUnfinished(text: string): boolean {
  const value = /^data\.\S+?\s*(?:!=|<=|>=|=|<|>|!)\s*(.*)$/.exec(text.trim())?.[1];
  return value === "" || /^('[^']*|"([^"\\]|\\.)*\\?)$/.test(value ?? "x");
}

interface Emptiness {
  readonly filter: string;
  readonly held: boolean;
  /** Events that match, and came while it was held. */
  readonly newer: number;
  /** Events that arrive in a second, whether they match or not. */
  readonly ofPerS: number;
}

/** Returns why a tail without a row is empty, and what to do. */
export function emptyOf({ filter, held, newer, ofPerS }: Emptiness): [title: string, hint: string] {
  const said = words.live;
  const wanted = filter.trim();
  if (isUnfinished(wanted)) return [said.unfinished(wanted), said.unfinishedHint];
  if (held) return [said.heldEmpty, said.heldHint(newer)];
  if (wanted === "") return [said.waiting, said.waitingHint];
  return [said.nothingMatches(wanted), said.arrives(ofPerS)];
}
