/** The head of every page: where one is, where one can go, how old the numbers are. */
import { useState } from "preact/hooks";
import { chartRules, firingCount, sickCount, useReader } from "../lib/alerts";
import { pausedMs } from "../lib/pause";
import { current } from "../lib/router";
import { session } from "../lib/session";
import { type Zone, zoneName } from "../lib/time";
import { setZone, to, zone } from "../lib/view";
import { live, nowMs } from "../live/live";
import { words } from "../messages.en";
import { isUnder, NAV, type NavPage } from "../pages";
import { openDialog } from "./dialogs";
import { FreshnessPill } from "./freshness";
import { Icon, Mark } from "./icon";
import { Seg } from "./seg";
import { SignOut } from "./sign-out";

const ALERTS = "/alerts";

/** Header and, on a phone, the tab bar. */
export function Header() {
  useReader(chartRules);
  return (
    <>
      <a class="skip" href="#main">
        {words.skip}
      </a>
      <header class="top">
        <a class="brand" href={to("/")}>
          <Mark />
          {words.brand}
        </a>
        <span class="tenant">{session.value?.tenant ?? ""}</span>
        <nav class="nav" aria-label={words.nav.label}>
          {NAV.map((entry) => (
            <Link key={entry.pattern} entry={entry} />
          ))}
        </nav>
        <span class="grow" />
        <button type="button" class="search" onClick={() => openDialog("find")}>
          <Icon name="search" small />
          <span class="grow">{words.find.button}</span>
          <kbd>/</kbd>
        </button>
        <FreshnessPill pausedMs={pausedMs.value} />
        <ZoneSwitch />
        <ThemeSwitch />
        <Menu />
      </header>
      <nav class="tabbar" aria-label={words.nav.label}>
        {NAV.filter((entry) => entry.onPhone).map((entry) => (
          <Link key={entry.pattern} entry={entry} icon />
        ))}
        <button type="button" onClick={() => openDialog("more")}>
          <Icon name="more" />
          {words.nav.more}
        </button>
      </nav>
    </>
  );
}

function Link({ entry, icon = false }: { entry: NavPage; icon?: boolean }) {
  const here = isUnder(current.value.path, entry);
  const alerts = entry.pattern === ALERTS;
  const firing = alerts ? (firingCount.value ?? 0) : 0;
  const sick = alerts ? sickCount.value : 0;
  return (
    <a
      class={firing + sick > 0 ? "counted" : undefined}
      href={to(entry.pattern)}
      aria-current={here ? "page" : undefined}
    >
      {icon && <Icon name={entry.icon} />}
      {entry.name}
      {firing > 0 && <Firing count={firing} />}
      {sick > 0 && <Sick count={sick} />}
    </a>
  );
}

/** How many alerts fire: number and icon, and the word for those who hear it. */
function Firing({ count }: { count: number }) {
  return (
    <span class="count" data-testid="firing-count">
      <Icon name="firing" />
      {count}
      <span class="sr"> {words.alertNews.firing}</span>
    </span>
  );
}

/** How many rules are not evaluated: what they would tell is told to nobody. */
function Sick({ count }: { count: number }) {
  const said = words.alertNews.sick(count);
  return (
    <span class="count sick" data-testid="sick-count" title={said}>
      <Icon name="alert" />
      {count}
      <span class="sr"> {said}</span>
    </span>
  );
}

/** Local time or UTC. */
export function ZoneSwitch() {
  const local = zoneName("local", nowMs.value);
  const choices: { value: Zone; text: string }[] = [
    { value: "local", text: local === "UTC" ? "Local" : local },
    { value: "utc", text: "UTC" },
  ];
  return (
    <Seg
      class="zone"
      label={words.zone.label}
      choices={choices}
      value={zone.value}
      onPick={setZone}
    />
  );
}

/** Light or dark, kept in this browser. */
export function ThemeSwitch() {
  const [dark, setDark] = useState(isDark);
  const turn = () => {
    const theme = dark ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    setDark(!dark);
    try {
      localStorage.setItem("weir.theme", theme);
    } catch {
      // Storage can be forbidden; then it holds until the page is left.
    }
  };
  return (
    <button
      type="button"
      class="iconbtn theme"
      aria-label={dark ? words.theme.toLight : words.theme.toDark}
      onClick={turn}
    >
      <Icon name="sun" />
    </button>
  );
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function Menu() {
  return (
    <button
      type="button"
      class="iconbtn"
      aria-label={words.settings.menu}
      onClick={() => openDialog("more")}
    >
      <Icon name="gear" />
    </button>
  );
}

/** What does not fit into the header: on a phone most of it. */
export function MoreMenu({ close }: { close: () => void }) {
  return (
    <div class="more">
      <nav class="more-nav" aria-label={words.nav.more}>
        {NAV.filter((entry) => !entry.onPhone).map((entry) => (
          <a key={entry.pattern} href={to(entry.pattern)} onClick={close}>
            <Icon name={entry.icon} />
            {entry.name}
          </a>
        ))}
      </nav>
      <div class="row wrap">
        <ZoneSwitch />
        <ThemeSwitch />
        <button type="button" class="btn" onClick={() => openDialog("find")}>
          <Icon name="search" small />
          {words.find.button}
        </button>
        <button type="button" class="btn" onClick={() => openDialog("keys")}>
          {words.settings.keys}
        </button>
      </div>
      <SignOut done={close} />
      <span class="t3 s" data-testid="revision">
        {live.link.value.scopes.join(" · ")}
      </span>
    </div>
  );
}
