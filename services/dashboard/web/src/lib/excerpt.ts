/** The line of a text that is wrong, with a caret below the place. Pure. */

/** So many characters of a monospaced line fit beside the smallest page's edges. */
export const COLUMNS = 40;

/**
 * Returns an excerpt no wider than so many columns: what is left of its line is around the caret.
 *
 * @param excerpt Two lines as the server sends them: the text, and `^` below the place.
 * @param columns How many characters the line may have, with `…` where it goes on.
 */
export function narrowed(excerpt: string, columns = COLUMNS): string {
  const [text = "", below = ""] = excerpt.split("\n");
  // By code points, as the server counts.
  const line = Array.from(text);
  const column = below.length - 1;
  if (line.length <= columns) return excerpt;
  const start = Math.max(0, Math.min(column - Math.floor(columns / 2), line.length - columns));
  const shown = line.slice(start, start + columns);
  if (start > 0) shown[0] = "…";
  if (start + columns < line.length) shown[columns - 1] = "…";
  return `${shown.join("")}\n${" ".repeat(column - start)}^`;
}
