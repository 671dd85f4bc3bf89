/** Find: one field for pages, boards, metrics and event types (ARIA combobox). */
import { useMemo, useState } from "preact/hooks";
import { useLoad } from "../api/load";
import type { Board, Metric, Page, SeenType } from "../api/shapes";
import { chartRules, useReader } from "../lib/alerts";
import { navigate } from "../lib/router";
import { session } from "../lib/session";
import { to } from "../lib/view";
import { words } from "../messages.en";
import { NAMED } from "../pages";

interface Hit {
  readonly name: string;
  readonly kind: string;
  readonly path: string;
}

const PLACES: readonly Hit[] = NAMED.map((page) =>
  hit(page.name, page.action ? words.find.action : words.find.page, page.pattern),
);
const MOST = 12;

/** Returns what matches, best first: beginnings before middles, short before long. */
export function ranked(hits: readonly Hit[], text: string): readonly Hit[] {
  const wanted = text.trim().toLowerCase();
  return hits
    .map((hit) => ({ hit, at: hit.name.toLowerCase().indexOf(wanted) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => Math.sign(a.at) - Math.sign(b.at) || a.hit.name.length - b.hit.name.length)
    .map(({ hit }) => hit)
    .slice(0, MOST);
}

/** The field with its list. */
export function Find({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const ready = session.value?.signed_in ?? false;
  const boards = useListed<Board>(ready, "/boards");
  const metrics = useListed<Metric>(ready, "/metrics");
  const rules = useReader(chartRules).items;
  const types = useListed<SeenType>(ready, "/discovery/types");
  const hits = useMemo(
    () =>
      ranked(
        [
          ...PLACES,
          ...boards.map((b) => hit(b.title || b.name, words.find.board, `/b/${b.name}`)),
          ...metrics.map((m) => hit(m.name, words.find.metric, `/m/${m.name}`)),
          ...(rules ?? []).map((r) => hit(r.name, words.find.rule, `/rules/${r.name}`)),
          ...types.map((t) =>
            hit(t.type, words.nav.newMetric, `/metrics/new?type=${encodeURIComponent(t.type)}`),
          ),
        ],
        text,
      ),
    [boards, metrics, rules, types, text],
  );
  const chosen = Math.min(at, hits.length - 1);
  const go = (one: Hit | undefined) => {
    if (!one) return;
    close();
    navigate(one.path.includes("?") ? one.path : to(one.path));
  };
  const pressed = (key: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key.key];
    if (step !== undefined) {
      key.preventDefault();
      setAt((chosen + step + hits.length) % Math.max(1, hits.length));
    } else if (key.key === "Enter") go(hits[chosen]);
  };
  return (
    <div class="find">
      <input
        class="field"
        type="text"
        role="combobox"
        aria-label={words.find.hint}
        aria-expanded="true"
        aria-controls="find-list"
        aria-activedescendant={hits[chosen] ? `find-${chosen}` : undefined}
        autocomplete="off"
        placeholder={words.find.hint}
        // showModal() focuses this in place of the first button.
        autofocus
        value={text}
        onInput={(input) => {
          setText(input.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={pressed}
      />
      <div id="find-list" role="listbox" aria-label={words.find.title}>
        {hits.map((one, nth) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are handled by the field
          <div
            key={one.path}
            id={`find-${nth}`}
            role="option"
            tabIndex={-1}
            aria-selected={nth === chosen}
            onClick={() => go(one)}
          >
            <span>{one.name}</span>
            <span class="t3 s">{one.kind}</span>
          </div>
        ))}
      </div>
      {hits.length === 0 && <p class="t3">{words.find.none(text)}</p>}
    </div>
  );
}

const NONE: readonly never[] = [];

/** Reads a list as whoever is signed in; it is nobody's while nobody is. */
function useListed<T>(ready: boolean, path: string): readonly T[] {
  const { body } = useLoad<Page<T>>(ready ? path : null);
  return ready && body ? body.items : NONE;
}

function hit(name: string, kind: string, path: string): Hit {
  return { name, kind, path };
}
