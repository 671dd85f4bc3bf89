/** The address bar as state: a reload, Back and a pasted link give the same screen. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";

export interface Place {
  readonly path: string;
  readonly params: URLSearchParams;
}

const here = (): Place => ({
  path: location.pathname,
  params: new URLSearchParams(location.search),
});

const place = signal<Place>(
  typeof location === "undefined" ? { path: "/", params: new URLSearchParams() } : here(),
);

/** Where the page is. */
export const current: ReadonlySignal<Place> = place;

/** Tells whether the page may be left at once; else it calls what leaves it, if it is let to. */
export type Guard = (leave: () => void) => boolean;

const guard = signal<{ readonly ask: Guard } | null>(null);

/** Whether something is on the page that is lost with it. */
export const guarded: ReadonlySignal<boolean> = computed(() => guard.value !== null);

/** Asks before the page is left. Returns how to ask no more. */
export function guardLeaving(ask: Guard): () => void {
  const own = { ask };
  guard.value = own;
  return () => {
    if (guard.peek() === own) guard.value = null;
  };
}

const isHeld = (leave: () => void): boolean => guard.peek()?.ask(leave) === false;

/** Does what leaves the page, at once or once whoever guards it lets it. */
export function leaving(leave: () => void): void {
  if (!isHeld(leave)) leave();
}

/** Goes to an address of this site; Back returns. */
export const navigate = (href: string): void => leaving(() => go(href));

function go(href: string): void {
  history.pushState(null, "", href);
  place.value = here();
  scrollTo(0, 0);
}

/** Changes parameters in place: what is typed or toggled leaves no trail in Back. */
export function replaceParams(changes: Readonly<Record<string, string | null>>): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  history.replaceState(null, "", text ? `${location.pathname}?${text}` : location.pathname);
  place.value = here();
}

/** Replaces the address without a trail, such as to drop a token from it. */
export function replacePath(href: string): void {
  history.replaceState(null, "", href);
  place.value = here();
}

/** Follows Back, Forward and clicks on links of this site. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    const { path, params } = place.value;
    const href = location.pathname + location.search;
    if (location.pathname !== path && isHeld(() => go(href))) {
      // The browser has gone there already; this puts the page back on top.
      const text = params.toString();
      history.pushState(null, "", text ? `${path}?${text}` : path);
      return;
    }
    place.value = here();
  });
  document.addEventListener("click", (click) => {
    if (click.defaultPrevented || click.button !== 0) return;
    if (click.metaKey || click.ctrlKey || click.shiftKey || click.altKey) return;
    const link = click.target instanceof Element ? click.target.closest("a") : null;
    if (!link || link.target || link.hasAttribute("download")) return;
    const address = new URL(link.href, location.href);
    if (address.origin !== location.origin || address.pathname.startsWith("/api/")) return;
    if (address.hash && address.pathname === location.pathname) return;
    click.preventDefault();
    navigate(address.pathname + address.search);
  });
}

/** Returns the parts of a path that match a pattern such as `/b/:name`, or null. */
export function matched(pattern: string, path: string): ReadonlyMap<string, string> | null {
  const wanted = pattern.split("/");
  const got = path.replace(/\/+$/, "").split("/");
  if (path === "/" ? pattern !== "/" : wanted.length !== got.length) return null;
  const found = new Map<string, string>();
  for (const [at, part] of wanted.entries()) {
    const text = got[at] ?? "";
    if (part.startsWith(":")) {
      try {
        found.set(part.slice(1), decodeURIComponent(text));
      } catch {
        return null;
      }
    } else if (part !== text) return null;
  }
  return found;
}
