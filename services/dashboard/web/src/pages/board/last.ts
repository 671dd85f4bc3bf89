/** Which board was looked at last, in this browser. */

const STORED = "weir.board";

/** Returns its name, or null. */
export function lastBoard(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

/** Remembers it. */
export function rememberBoard(name: string): void {
  try {
    localStorage.setItem(STORED, name);
  } catch {
    // Storage can be forbidden; then `/` shows the first board.
  }
}
