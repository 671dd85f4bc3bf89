/** The page of the address, and what every page has around it. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Announcer } from "./components/announcer";
import { Banner } from "./components/banner";
import { Dialogs, openDialog } from "./components/dialogs";
import { Header } from "./components/header";
import { Empty, Note } from "./components/notes";
import { onKey } from "./lib/keys";
import { goOn, togglePause } from "./lib/pause";
import { current, guarded, navigate } from "./lib/router";
import { away, session, visit } from "./lib/session";
import { stepRange, to, toggleTable } from "./lib/view";
import { words } from "./messages.en";
import { PAGES, pageAt } from "./pages";
import { backTo } from "./pages/login/address";

const DOOR = "/login";

/** The whole screen. */
export function App() {
  const { path } = current.value;
  const shut = path !== DOOR && away.value;
  useKeys();
  useSignIn(path);
  // another page starts with the present
  useEffect(goOn, [path]);
  return (
    <>
      <Header />
      <main id="main" tabIndex={-1}>
        {path !== DOOR && !shut && <Banner />}
        {shut && guarded.value && <DoorOfPage />}
        <div class={shut ? "page away" : "page"}>
          <Routed path={path} />
        </div>
      </main>
      <Announcer />
      <Dialogs />
    </>
  );
}

function Routed({ path }: { path: string }) {
  const found = pageAt(path);
  // Nothing of a page stays for whoever signs in next; the door is everybody's.
  const key = path === DOOR ? path : `${visit.value} ${path}`;
  if (found) return <found.page.Page key={key} names={found.names} />;
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

/**
 * The door before a page on which something is typed. The page stays as it is, unseen: whoever has
 * typed there finds it again, and nobody else.
 */
function DoorOfPage() {
  const Door = pageAt(DOOR)?.page.Page;
  useLayoutEffect(() => {
    const { title } = document;
    // Whatever was open over the page is as little to be seen as the page.
    for (const dialog of document.querySelectorAll<HTMLDialogElement>("main dialog"))
      dialog.close();
    return () => {
      document.title = title;
    };
  }, []);
  return (
    <>
      <Note tone="warn" icon="alert">
        <b>{words.login.ended}</b> {words.login.kept}
      </Note>
      {Door && <Door names={new Map()} />}
    </>
  );
}

/**
 * Sends who is nobody to the door, and keeps where they wanted to go: from there whoever was sent
 * is fetched back when somebody has signed in, in whichever tab.
 */
function useSignIn(path: string): void {
  const sent = useRef(false);
  const gone = away.value;
  const held = guarded.value;
  const somebody = session.value?.signed_in === true && !gone;
  useEffect(() => {
    if (path === DOOR) {
      // Whoever has signed in here may be on their way by now.
      const { path: now, params } = current.peek();
      if (now === DOOR && sent.current && somebody) navigate(backTo(params));
      return;
    }
    // A page that is held has the door before it.
    sent.current = gone && !held;
    if (!sent.current) return;
    const back = path + location.search;
    navigate(back === "/" ? DOOR : `${DOOR}?to=${encodeURIComponent(back)}`);
  }, [path, gone, held, somebody]);
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
      ...PAGES.map(({ keys, pattern }) =>
        keys ? onKey(keys, () => navigate(to(pattern))) : () => undefined,
      ),
    ];
    return () => {
      for (const one of undo) one();
    };
  }, []);
}
