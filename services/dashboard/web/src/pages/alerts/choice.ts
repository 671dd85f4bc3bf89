/** Which tab and which alert the address says. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { current, navigate, replaceParams } from "../../lib/router";
import { to } from "../../lib/view";
import { nowMs } from "../../live/live";

const GRAIN_MS = 2_000;

/** The server's clock, as often as lists are read: a long list is not drawn for each tick. */
export const listNowMs = computed(() => Math.floor(nowMs.value / GRAIN_MS) * GRAIN_MS);

export const TABS = ["now", "rules", "history", "silences", "channels"] as const;
export type Tab = (typeof TABS)[number];

/** Returns the tab that an address asks for. */
export function tabOf(params: URLSearchParams): Tab {
  return TABS.find((one) => one === params.get("tab")) ?? "now";
}

/** Returns an address of the page that keeps zone and range. */
export function addressOf(tab: Tab, id: string | null): string {
  const base = to("/alerts");
  const own = new URLSearchParams();
  const { params } = current.value;
  // What somebody looks for on one tab is not looked for on another.
  for (const name of tabOf(params) === tab ? ["q", "sort"] : []) {
    const value = params.get(name);
    if (value !== null) own.set(name, value);
  }
  if (tab !== "now") own.set("tab", tab);
  if (id !== null) own.set("id", id);
  const text = own.toString();
  return text ? `${base}${base.includes("?") ? "&" : "?"}${text}` : base;
}

const query = "(max-width: 720px)";
const narrow = signal(typeof matchMedia !== "undefined" && matchMedia(query).matches);

/** Whether the list and the alert are shown one after the other. */
export function useNarrow(): boolean {
  useEffect(() => {
    const media = matchMedia(query);
    const turned = () => {
      narrow.value = media.matches;
    };
    turned();
    media.addEventListener("change", turned);
    return () => media.removeEventListener("change", turned);
  }, []);
  return narrow.value;
}

/** Goes to an alert, or with null back to the list; beside a list that leaves no trail in Back. */
export function go(tab: Tab, id: string | null, trail: boolean): void {
  if (trail || current.value.path !== "/alerts") navigate(addressOf(tab, id));
  else replaceParams({ id });
}
