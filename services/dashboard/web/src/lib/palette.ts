/** Colors and dashes: series from their slot, everything else from the tokens of the theme. */
import { signal } from "@preact/signals";

/** Solid, and three dashes, in canvas units. */
export const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 2], [8, 3, 2, 3]];

export interface Stroke {
  /** Token of the color, `s1` to `s8`. */
  readonly token: string;
  readonly dash: readonly number[];
}

/** Returns color and dash of a slot: 32 lines that differ, the same for everybody. */
export function strokeOf(slot: number): Stroke {
  const dash = DASHES[(slot + Math.floor(slot / 8)) % 4] ?? [];
  return { token: `s${(slot % 8) + 1}`, dash };
}

/** Counts up when the theme changes, so that canvases are painted anew. */
export const themeTurns = signal(0);

const cache = new Map<string, string>();
let probe: HTMLElement | null = null;

/** Returns a token's color in the present theme, as a canvas understands it. */
export function color(token: string): string {
  const known = cache.get(token);
  if (known !== undefined) return known;
  if (probe === null) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${token})`;
  const found = getComputedStyle(probe).color;
  cache.set(token, found);
  return found;
}

/** Notices when the theme changes, by the switch or by the system. */
export function watchTheme(): void {
  const turned = () => {
    cache.clear();
    themeTurns.value += 1;
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", turned);
  new MutationObserver(turned).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
}
