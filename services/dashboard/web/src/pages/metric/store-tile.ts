/** Writes a tile into a board through the definitions: what changed meanwhile is not overwritten. */
import { call, get, post, Refusal } from "../../api/client";
import type { Board, Definition, Page, Validation } from "../../api/shapes";
import { appendedTexts, boardName, isAppended, type NewTile, newBoard } from "../../lib/board-text";
import { words } from "../../messages.en";

/** A board that is there, or the title of one that is made. */
export type Onto = { readonly name: string } | { readonly title: string };

const at = (name: string) => `/definitions/board/${encodeURIComponent(name)}`;

/**
 * Returns the name of the board that has the tile now.
 *
 * @throws Refusal in the server's words; as `version_conflict` where trying again may help.
 */
export async function storeTile(onto: Onto, tile: NewTile): Promise<string> {
  if ("title" in onto) {
    const boards = await get<Page<Board>>("/boards");
    const name = boardName(
      onto.title,
      boards.items.map((board) => board.name),
    );
    const text = newBoard(name, onto.title, tile);
    await put(name, text, { "if-none-match": "*" });
    return name;
  }
  const { body, etag } = await call<Definition>({ method: "GET", path: at(onto.name) });
  await put(onto.name, await appended(body, tile), { "if-match": etag ?? "" });
  return onto.name;
}

const put = (name: string, text: string, headers: Readonly<Record<string, string>>) =>
  call<Definition>({ method: "PUT", path: at(name), body: { text }, headers });

/** Returns the first proposed text that the server reads as the same board and the tile. */
async function appended(board: Definition, tile: NewTile): Promise<string> {
  let refused: Validation | null = null;
  for (const text of appendedTexts(board.text, tile)) {
    const draft = { kind: "board", name: board.name, text };
    const found = await post<Validation>("/definitions/validate", draft);
    if (found.ok && found.parsed && isAppended(board.parsed, found.parsed)) return text;
    refused ??= found.ok ? null : found;
  }
  throw new Refusal({
    status: 422,
    code: refused?.code ?? "definition_invalid",
    message: words.put.byHand(refused?.message ?? ""),
    errors: refused?.errors ?? [],
  });
}
