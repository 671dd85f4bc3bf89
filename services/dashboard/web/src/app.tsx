/** All pages by their address, and what every page has around it. */
import { useEffect } from "preact/hooks";
import { Banner } from "./components/banner";
import { Dialogs, openDialog } from "./components/dialogs";
import { Header } from "./components/header";
import { lazy } from "./components/lazy";
import { Empty } from "./components/notes";
import { onKey } from "./lib/keys";
import { goOn, togglePause } from "./lib/pause";
import { current, matched, navigate } from "./lib/router";
import { session } from "./lib/session";
import { stepRange, to, toggleTable } from "./lib/view";
import { live } from "./live/live";
import { words } from "./messages.en";

/** A new page is one line here and one folder in pages/. */
const PAGES = [
  ["/", lazy(() => import("./pages/board/home"))],
  ["/b/:name", lazy(() => import("./pages/board/board"))],
  ["/metrics", lazy(() => import("./pages/metrics/metrics"))],
  ["/metrics/new", lazy(() => import("./pages/make/make"))],
  ["/m/:name", lazy(() => import("./pages/metric/metric"))],
  ["/live", lazy(() => import("./pages/live/live"))],
  ["/ledger", lazy(() => import("./pages/ledger/ledger"))],
  ["/status", lazy(() => import("./pages/status/status"))],
  ["/definitions", lazy(() => import("./pages/definitions/list"))],
  ["/d/:kind/:name", lazy(() => import("./pages/definitions/definition"))],
  ["/login", lazy(() => import("./pages/login/login"))],
] as const;

const GO_TO: Readonly<Record<string, string>> = {
  "g b": "/",
  "g m": "/metrics",
  "g l": "/live",
  "g p": "/status",
  "g d": "/definitions",
};

/** The whole screen. */
export function App() {
  const { path } = current.value;
  useKeys();
  useSignIn(path);
  // another page starts with the present
  useEffect(goOn, [path]);
  return (
    <>
      <Header />
      <main id="main" tabIndex={-1}>
        {path !== "/login" && <Banner />}
        <Routed path={path} />
      </main>
      <Dialogs />
    </>
  );
}

function Routed({ path }: { path: string }) {
  for (const [pattern, Page] of PAGES) {
    const names = matched(pattern, path);
    if (names) return <Page key={path} names={names} />;
  }
  return (
    <Empty icon="search" title={words.errors.notFound}>
      <h1 class="sr">{words.errors.notFound}</h1>
      <span class="s">{words.errors.notFoundHint}</span>
      <a class="btn" href="/">
        {words.nav.boards}
      </a>
    </Empty>
  );
}

/** Sends who is nobody to the door, and keeps where they wanted to go. */
function useSignIn(path: string): void {
  const denied = live.link.value.phase === "denied";
  const nobody = session.value !== null && !session.value.signed_in;
  useEffect(() => {
    if (path === "/login" || !(denied || nobody)) return;
    const back = path + location.search;
    navigate(back === "/" ? "/login" : `/login?to=${encodeURIComponent(back)}`);
  }, [path, denied, nobody]);
}

function useKeys(): void {
  useEffect(() => {
    const undo = [
      onKey("/", () => openDialog("find")),
      onKey("?", () => openDialog("keys")),
      onKey("Space", togglePause),
      onKey("t", toggleTable),
      onKey("[", () => stepRange(-1)),
      onKey("]", () => stepRange(1)),
      ...Object.entries(GO_TO).map(([keys, path]) => onKey(keys, () => navigate(to(path)))),
    ];
    return () => {
      for (const one of undo) one();
    };
  }, []);
}
