/** Alerts: what fires, all rules, and what was. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Alert, Rule } from "../../api/shapes";
import { lazy, type PageProps, useTitle } from "../../components/lazy";
import { Empty, Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import { endedAlerts, firingCount, openAlerts, rules, useReader } from "../../lib/alerts";
import { onKey } from "../../lib/keys";
import { current, navigate } from "../../lib/router";
import { may } from "../../lib/session";
import { alertWords } from "../../messages.alerts.en";
import { actWords } from "../../messages.channels.en";
import { addressOf, go, listNowMs, type Tab, tabOf, useNarrow } from "./choice";
import { Detail } from "./detail";
import { AlertRow, type Choosing, SectionRows } from "./list";
import { NewRule, NoRules } from "./no-rules";
import { alertsIn, firstOf, moved, type Present, presentOf } from "./now";
import { RulesTab } from "./rules-tab";
import { NotFound, Seek, wantedNow } from "./seek";
import { ALERT_ORDERS, alertsSought, orderOf, sectionsSought } from "./sought";

// What alerts are looked at without.
const SilencesTab = lazy(() => import("./silences-tab"));
const ChannelsTab = lazy(() => import("./channels-tab"));

const PAGE_ROWS = 100;
const SECTION_ROWS = 50;
/** What is over is read by when, if nobody asks for more. */
const HISTORY_ORDERS = ["newest", "severity", "longest"] as const;
/** Tabs with a button of their own for what is made there. */
const ACTED: ReadonlySet<Tab> = new Set<Tab>(["silences", "channels"]);

export default function AlertsPage({ names }: PageProps) {
  const { params } = current.value;
  const tab = tabOf(params);
  const id = names.get("id") ?? params.get("id");
  const firing = firingCount.value;
  useTitle(firing ? alertWords.firingTitle(firing) : alertWords.title);
  const open = useReader(openAlerts);
  const ended = useReader(endedAlerts);
  const known = useReader(rules);
  const problem = open.problem ?? ended.problem ?? known.problem;
  const there = open.items && ended.items && known.items;
  return (
    <div class="alerts-page">
      <Bar tab={tab} count={known.items?.length ?? null} picked={id !== null} />
      {problem && <Refused problem={problem} retry={readAll} />}
      {there && (
        <Tabbed
          tab={tab}
          id={id}
          open={open.items ?? []}
          ended={ended.items ?? []}
          rules={known.items ?? []}
        />
      )}
    </div>
  );
}

function readAll(): void {
  for (const list of [openAlerts, endedAlerts, rules]) void list.read();
}

function Bar({ tab, count, picked }: { tab: Tab; count: number | null; picked: boolean }) {
  const { tabs } = alertWords;
  return (
    <div class={picked ? "bar alerts-bar picked" : "bar alerts-bar"}>
      <h1>{alertWords.title}</h1>
      <Seg
        label={tabs.label}
        value={tab}
        choices={[
          { value: "now", text: tabs.now },
          {
            value: "rules",
            text: (
              <>
                {tabs.rules} {count !== null && <span class="t3">{count}</span>}
              </>
            ),
          },
          { value: "history", text: tabs.history },
          { value: "silences", text: actWords.tabs.silences },
          { value: "channels", text: actWords.tabs.channels },
        ]}
        onPick={(next) => navigate(addressOf(next, null))}
      />
      <span class="grow" />
      {may("define") && !ACTED.has(tab) && <NewRule />}
    </div>
  );
}

interface TabbedProps {
  readonly tab: Tab;
  readonly id: string | null;
  readonly open: readonly Alert[];
  readonly ended: readonly Alert[];
  readonly rules: readonly Rule[];
}

function Tabbed(props: TabbedProps) {
  const { tab, rules: all } = props;
  if (tab === "rules") return <RulesTab rules={all} open={props.open} ended={props.ended} />;
  if (tab === "silences") return <SilencesTab rules={all} />;
  if (tab === "channels") return <ChannelsTab />;
  return tab === "now" ? <Now {...props} /> : <History {...props} />;
}

function Now({ id, open, ended, rules: all }: TabbedProps) {
  const [most, setMost] = useState(SECTION_ROWS);
  const now = presentOf(open, ended, all, listNowMs.value);
  const order = orderOf(current.value.params, ALERT_ORDERS);
  const sections = sectionsSought(now.sections, wantedNow(), order, listNowMs.value);
  const present = { ...now, sections };
  const first = firstOf(sections, most);
  const shown = alertsIn(first);
  const empty = now.sections.length === 0;
  if (empty && id === null) return all.length > 0 ? <Quiet ok={present.ok} /> : <NoRules />;
  return (
    <Split tab="now" id={id} shown={shown} rules={all}>
      {(choosing) => (
        <NowList
          present={present}
          most={most}
          more={() => setMost(most + SECTION_ROWS)}
          {...choosing}
        />
      )}
    </Split>
  );
}

function Quiet({ ok }: { ok: number }) {
  return (
    <div class="panel">
      <Empty icon="ok" title={alertWords.now.quiet}>
        <span>{alertWords.now.rulesOk(ok)}</span>
      </Empty>
    </div>
  );
}

interface NowListProps extends Choosing {
  readonly present: Present;
  /** How many rows of a section are shown. */
  readonly most: number;
  more(): void;
}

function NowList({ present, most, more, ...choosing }: NowListProps) {
  const first = present.sections[0]?.state;
  const calm = first !== "firing" && first !== "recovering" && wantedNow() === "";
  const order = orderOf(current.value.params, ALERT_ORDERS);
  return (
    <section class="panel alerts-side" aria-label={alertWords.now.label}>
      <Seek label={alertWords.seek.alerts} orders={ALERT_ORDERS} order={order} />
      {first === undefined && wantedNow() !== "" && <NotFound />}
      {calm && <p class="calm t2">{alertWords.now.quiet}</p>}
      {present.sections.map((section) => (
        <SectionRows key={section.state} section={section} most={most} more={more} {...choosing} />
      ))}
      <footer>
        <span>{alertWords.now.rulesOk(present.ok)}</span>
        <span class="grow" />
        <KeyHint />
      </footer>
    </section>
  );
}

function KeyHint() {
  return (
    <span class="hide-s row">
      <kbd>j</kbd> <kbd>k</kbd> {alertWords.now.keys}
    </span>
  );
}

function History({ id, ended, rules: all }: TabbedProps) {
  const [most, setMost] = useState(PAGE_ROWS);
  if (ended.length === 0 && id === null) {
    return (
      <div class="panel">
        <Empty title={alertWords.empty.noHistory}>
          <span class="s">{alertWords.empty.noHistoryHint}</span>
        </Empty>
      </div>
    );
  }
  const order = orderOf(current.value.params, HISTORY_ORDERS);
  const sought = alertsSought(ended, wantedNow(), order, listNowMs.value);
  const shown = sought.slice(0, most);
  const left = sought.length - shown.length;
  const byName = new Map(all.map((rule) => [rule.name, rule]));
  return (
    <Split tab="history" id={id} shown={shown} rules={all}>
      {(choosing) => (
        <section class="panel alerts-side" aria-label={alertWords.history.label}>
          <Seek label={alertWords.seek.alerts} orders={HISTORY_ORDERS} order={order} />
          {sought.length === 0 && wantedNow() !== "" && <NotFound />}
          <ul class="alerts-list">
            {shown.map((alert) => (
              <AlertRow
                key={alert.id}
                alert={alert}
                rule={byName.get(alert.rule) ?? null}
                {...choosing}
              />
            ))}
          </ul>
          {left > 0 && (
            <button type="button" class="btn quiet" onClick={() => setMost(most + PAGE_ROWS)}>
              {alertWords.history.more(Math.min(left, PAGE_ROWS))}
            </button>
          )}
        </section>
      )}
    </Split>
  );
}

interface SplitProps {
  readonly tab: Tab;
  readonly id: string | null;
  readonly shown: readonly Alert[];
  readonly rules: readonly Rule[];
  children(choosing: Choosing): preact.ComponentChildren;
}

/** The list beside the alert; on a phone the one or the other. */
function Split({ tab, id, shown, rules: all, children }: SplitProps) {
  const narrow = useNarrow();
  const [closed, setClosed] = useState(false);
  const first = useRef<string | null>(null);
  // What was shown first stays, whatever begins to fire above it.
  first.current ??= shown[0]?.id ?? null;
  const chosen = id ?? (narrow || closed ? null : first.current);
  const close = () => {
    setClosed(true);
    go(tab, null, narrow);
  };
  useMoving(
    shown.map((one) => one.id),
    chosen,
    { choose: (next) => go(tab, next, false), close },
  );
  const choosing: Choosing = {
    chosen,
    addressOf: (one) => addressOf(tab, one),
    choose: (one) => go(tab, one, narrow),
  };
  return (
    <div class="split">
      {(!narrow || chosen === null) && children(choosing)}
      {chosen !== null && <Detail key={chosen} id={chosen} rules={all} close={close} />}
      {chosen === null && !narrow && (
        <div class="panel">
          <Empty title={alertWords.empty.choose}>
            <span class="s">{alertWords.empty.chooseHint}</span>
          </Empty>
        </div>
      )}
    </div>
  );
}

interface Moving {
  choose(id: string): void;
  close(): void;
}

/** The keys j, k and Escape. */
function useMoving(ids: readonly string[], chosen: string | null, { choose, close }: Moving): void {
  const text = ids.join(" ");
  // the text says which alerts there are
  useEffect(() => {
    const step = (by: 1 | -1) => {
      const next = moved(ids, chosen, by);
      if (next !== null) choose(next);
    };
    const undo = [onKey("j", () => step(1)), onKey("k", () => step(-1)), onKey("Escape", close)];
    return () => {
      for (const one of undo) one();
    };
  }, [text, chosen]);
}
