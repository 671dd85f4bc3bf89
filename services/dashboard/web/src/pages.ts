/** All pages: a new one is one entry here and one folder in pages/. */

import type { ComponentType } from "preact";
import type { IconName } from "./components/icon";
import { lazy, type PageProps } from "./components/lazy";
import { matched } from "./lib/router";
import { words } from "./messages.en";

/** A page: its address, and where it is offered. */
export interface PageEntry {
  readonly pattern: string;
  readonly Page: ComponentType<PageProps>;
  /** What it is called; without a name it is reached by links only. */
  readonly name?: string;
  /** Its sign in the navigation; without one it is not listed there. */
  readonly icon?: IconName;
  /** Whether a phone has it in the tab bar, which holds four. */
  readonly onPhone?: boolean;
  /** The keys that go there. */
  readonly keys?: string;
  /** The page of the navigation that it belongs to; itself if left out. */
  readonly of?: string;
  /** Whether one does something there, rather than look. */
  readonly action?: boolean;
}

export const PAGES: readonly PageEntry[] = [
  {
    pattern: "/",
    Page: lazy(() => import("./pages/board/home")),
    name: words.nav.boards,
    icon: "board",
    onPhone: true,
    keys: "g b",
  },
  { pattern: "/b/:name", Page: lazy(() => import("./pages/board/board")), of: "/" },
  {
    pattern: "/metrics",
    Page: lazy(() => import("./pages/metrics/metrics")),
    name: words.nav.metrics,
    icon: "metric",
    onPhone: true,
    keys: "g m",
  },
  {
    pattern: "/metrics/new",
    Page: lazy(() => import("./pages/make/make")),
    name: words.nav.newMetric,
    of: "/metrics",
    action: true,
  },
  { pattern: "/m/:name", Page: lazy(() => import("./pages/metric/metric")), of: "/metrics" },
  {
    pattern: "/rules/new",
    Page: lazy(() => import("./pages/rule/rule")),
    name: words.nav.newRule,
    of: "/alerts",
    action: true,
  },
  { pattern: "/rules/:name", Page: lazy(() => import("./pages/rule/rule")), of: "/alerts" },
  {
    pattern: "/live",
    Page: lazy(() => import("./pages/live/live")),
    name: words.nav.live,
    icon: "live",
    keys: "g l",
  },
  {
    pattern: "/alerts",
    Page: lazy(() => import("./pages/alerts/alerts")),
    name: words.nav.alerts,
    icon: "bell",
    onPhone: true,
    keys: "g a",
  },
  { pattern: "/alerts/:id", Page: lazy(() => import("./pages/alerts/alerts")), of: "/alerts" },
  {
    pattern: "/ledger",
    Page: lazy(() => import("./pages/ledger/ledger")),
    name: words.nav.ledger,
    icon: "table",
  },
  {
    pattern: "/status",
    Page: lazy(() => import("./pages/status/status")),
    name: words.nav.status,
    icon: "flow",
    onPhone: true,
    keys: "g p",
  },
  {
    pattern: "/definitions",
    Page: lazy(() => import("./pages/definitions/list")),
    name: words.nav.definitions,
    icon: "copy",
    keys: "g d",
  },
  {
    pattern: "/d/:kind/:name",
    Page: lazy(() => import("./pages/definitions/definition")),
    of: "/definitions",
  },
  { pattern: "/login", Page: lazy(() => import("./pages/login/login")) },
];

/** A page that has a name. */
export type NamedPage = PageEntry & { readonly name: string };
/** A page that stands in the navigation. */
export type NavPage = NamedPage & { readonly icon: IconName };

/** Pages that Find offers. */
export const NAMED = PAGES.filter((one): one is NamedPage => one.name !== undefined);

/** Pages of the navigation, in its order. */
export const NAV = NAMED.filter((one): one is NavPage => one.icon !== undefined);

/** Returns the page at a path with the names in it, or null. */
export function pageAt(
  path: string,
): { page: PageEntry; names: ReadonlyMap<string, string> } | null {
  for (const page of PAGES) {
    const names = matched(page.pattern, path);
    if (names) return { page, names };
  }
  return null;
}

/** Tells whether a path belongs to a page of the navigation. */
export function isUnder(path: string, nav: NavPage): boolean {
  const page = pageAt(path)?.page;
  return page !== undefined && (page.of ?? page.pattern) === nav.pattern;
}
