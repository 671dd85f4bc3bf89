/** What a number is worth, beside it: stale, incomplete, rebuilding, refused. */
import type { TileState } from "../lib/number-view";
import { fresh } from "../live/live";
import { words } from "../messages.en";
import { Icon, type IconName } from "./icon";

const MARKS: Readonly<Partial<Record<TileState, readonly [string, IconName, string]>>> = {
  stale: ["warn", "stale", words.tile.stale],
  error: ["bad", "alert", words.tile.error],
  incomplete: ["warn", "alert", words.tile.incomplete],
  rebuilding: ["none", "replay", words.tile.rebuilding],
};

/** Tells whether a state has a mark: what is well has none. */
export function isMarked(state: TileState): boolean {
  return MARKS[state] !== undefined;
}

/** The mark, with its word; nothing for what is well. */
export function TileMark({ state }: { state: TileState }) {
  const mark = MARKS[state];
  if (!mark) return null;
  const [tone, icon, text] = mark;
  const behind = state === "stale" && fresh.value?.status === "behind";
  const word = behind ? words.tile.behind : text;
  return (
    <span class={`state ${tone}`}>
      <Icon name={icon} />
      <span class="w">{word}</span>
    </span>
  );
}
