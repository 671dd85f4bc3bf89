/** Parts of the screen that are fetched when they are first shown, first of all pages. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { words } from "../messages.en";
import { Empty } from "./notes";

/** What every page is given: the names in its address. */
export interface PageProps {
  readonly names: ReadonlyMap<string, string>;
}

type Module<P> = { readonly default: ComponentType<P> };

/** Returns a component that fetches its code once. */
export function lazy<P extends object>(load: () => Promise<Module<P>>): ComponentType<P> {
  let found: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [state, setState] = useState<"waiting" | "there" | "failed">(found ? "there" : "waiting");
    useEffect(() => {
      // It may have come since it was drawn, fetched by another place on the screen.
      if (found) return setState("there");
      load().then(
        (module) => {
          found = module.default;
          setState("there");
        },
        () => setState("failed"),
      );
    }, []);
    if (found) {
      const Page = found;
      return <Page {...props} />;
    }
    if (state === "waiting") return null;
    return (
      <Empty icon="alert" title={words.errors.pageFailed}>
        <button type="button" class="btn" onClick={() => location.reload()}>
          {words.errors.retry}
        </button>
      </Empty>
    );
  };
}

/** Sets the title of the window. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · ${words.brand}` : words.brand;
  }, [title]);
}
