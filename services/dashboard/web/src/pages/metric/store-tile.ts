/**
 * Writes a tile into a board through the definitions: what changed meanwhile is not overwritten.
 *
 * Each text is stored only over the version that it was made from. A text whose answer never came
 * may have been stored, so it is looked for in the board's history before another is sent: trying
 * again never puts the tile twice.
 */
import { call, get, post, Refusal } from "../../api/client";
import type { Board, Change, Definition, Page, Validation } from "../../api/shapes";
import { pathOf } from "../../api/stored";
import {
  appendedTexts,
  boardName,
  isAppended,
  isFull,
  isOfTile,
  MAX_TILES,
  type NewTile,
  newBoard,
} from "../../lib/board-text";
import { metricWords } from "../../messages.metrics.en";

/** A board that is there, or the title of one that is made. */
export type Onto = { readonly name: string } | { readonly title: string };

/** What helps after a refusal: the same again, the tile put in by hand, or what it says. */
export type Mend = "again" | "by_hand" | null;

/** Why a tile was not put, in words of the dialog. */
export class NotPut extends Refusal {
  constructor(
    status: number,
    code: string,
    message: string,
    readonly mend: Mend,
  ) {
    super({ status, code, message, errors: [] });
  }
}

/** Returns what helps: what the server refuses for its content it refuses again. */
export function mendOf(error: unknown): Mend {
  if (error instanceof NotPut) return error.mend;
  return error instanceof Refusal && error.problem.status < 500 ? null : "again";
}

/** A text that was sent, and what it is of. */
export interface Sent {
  readonly name: string;
  readonly text: string;
  /** The version that it was made from; 0 for a new board. */
  readonly after: number;
  readonly asked: string;
}

const at = (name: string) => pathOf("board", name);

/**
 * Returns the name of the board that has the tile now.
 *
 * @param unsure What was sent without an answer; it is added to, and kept while the tile is tried.
 * @throws Refusal in the server's words, or `NotPut` where the dialog knows better.
 */
export async function storeTile(onto: Onto, tile: NewTile, unsure: Sent[]): Promise<string> {
  try {
    return await stored(onto, tile, unsure);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const told = unsure.length > 0 ? metricWords.put.unsure : metricWords.put.unreachable;
    throw new NotPut(0, "unreachable", told, "again");
  }
}

/** Reads, makes the text and sends it; over a change that came between, once more. */
async function stored(onto: Onto, tile: NewTile, unsure: Sent[]): Promise<string> {
  const TURNS = 2;
  const asked = JSON.stringify([onto, tile]);
  for (let turn = 1; ; turn += 1) {
    const found = await readOnto(onto);
    const before = await storedOf(unsure.filter((sent) => sent.asked === asked));
    if (before !== null) return before.name;
    const sent = { ...(await textOf(found, onto, tile)), asked };
    try {
      await put(sent, unsure);
      return sent.name;
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (turn === TURNS) throw new NotPut(412, "version_conflict", metricWords.put.raced, "again");
    }
  }
}

const isConflict = (error: unknown) =>
  error instanceof Refusal && error.problem.code === "version_conflict";

/** A board that is there, or the names that a new one cannot have. */
type Found = Definition | readonly string[];

/** Reads before it is looked whether a text was stored, so that neither can be missed. */
async function readOnto(onto: Onto): Promise<Found> {
  try {
    if ("name" in onto) return await get<Definition>(at(onto.name));
    return (await get<Page<Board>>("/boards")).items.map((board) => board.name);
  } catch (error) {
    if (!isStatus(error, 404) || !("name" in onto)) throw error;
    throw new NotPut(404, "not_found", metricWords.put.deleted(onto.name), null);
  }
}

const isStatus = (error: unknown, status: number) =>
  error instanceof Refusal && error.problem.status === status;

/** Returns what was stored after all; edits before a board's end are another board's. */
async function storedOf(unsure: readonly Sent[]): Promise<Sent | null> {
  for (const sent of unsure) {
    const items = await historyOf(sent.name);
    const ended = items.findIndex((change) => change.op === "delete");
    const since = ended < 0 ? items : items.slice(0, ended);
    const isIt = (change: Change) => change.version > sent.after && change.text === sent.text;
    if (since.some(isIt)) return sent;
  }
  return null;
}

async function historyOf(name: string): Promise<readonly Change[]> {
  try {
    return (await get<Page<Change>>(`${at(name)}/history`)).items;
  } catch (error) {
    if (isStatus(error, 404)) return [];
    throw error;
  }
}

/** Returns what is sent: the new board, or the text of the old one with the tile. */
async function textOf(found: Found, onto: Onto, tile: NewTile): Promise<Omit<Sent, "asked">> {
  if ("version" in found) {
    return { name: found.name, text: await appended(found, tile), after: found.version };
  }
  const title = "title" in onto ? onto.title : "";
  const name = boardName(title, found);
  return { name, text: newBoard(name, title, tile), after: 0 };
}

/** Stores a text over the version that it was made from; without an answer it is kept as unsure. */
async function put(sent: Sent, unsure: Sent[]): Promise<void> {
  const headers = sent.after ? { "if-match": `"${sent.after}"` } : { "if-none-match": "*" };
  try {
    await call<Definition>({
      method: "PUT",
      path: at(sent.name),
      body: { text: sent.text },
      headers,
    });
  } catch (error) {
    // A gateway in between, or a server that could not read its own change back, says 5xx.
    if (!(error instanceof Refusal) || error.problem.status >= 500) unsure.push(sent);
    throw error;
  }
}

/** Returns the first proposed text that the server reads as the same board and the tile. */
async function appended(board: Definition, tile: NewTile): Promise<string> {
  if (isFull(board.parsed)) {
    throw new NotPut(422, "definition_invalid", metricWords.put.full(MAX_TILES), null);
  }
  for (const text of appendedTexts(board.text, tile)) {
    const found = await post<Validation>("/definitions/validate", {
      kind: "board",
      name: board.name,
      text,
    });
    if (found.ok && found.parsed && isAppended(board.parsed, found.parsed)) return text;
    // Errors of a text that nobody wrote help nobody; those of the tile do.
    if (!found.ok && isOfTile(found.errors ?? [], board.parsed))
      throw new Refusal(problemIn(found));
  }
  throw new NotPut(422, "definition_invalid", metricWords.put.byHand, "by_hand");
}

const problemIn = ({ code, message, errors }: Validation) => ({
  status: 422,
  code: code ?? "definition_invalid",
  message: message ?? "",
  errors: errors ?? [],
});
