/** The web UI of Weir: one connection, one address bar, one page at a time. */
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/panels.css";
import "./styles/charts.css";
import "./styles/pages.css";
import "./styles/alerts.css";
import "./styles/narrow.css";
import { render } from "preact";
import { App } from "./app";
import { startAlerts } from "./lib/alerts";
import { startKeys } from "./lib/keys";
import { mendLanguage } from "./lib/locale";
import { watchTheme } from "./lib/palette";
import { startRouter } from "./lib/router";
import { whoAmI } from "./lib/session";
import { startLive } from "./live/live";

const AGAIN_MS = 2_000;

mendLanguage();
startRouter();
startKeys();
watchTheme();
startLive();
startAlerts();
askWho();

/** Who nobody is signs in; a server that does not answer is told by the pill, and asked again. */
function askWho(): void {
  whoAmI().catch(() => setTimeout(askWho, AGAIN_MS));
}

const root = document.getElementById("app");
if (root) render(<App />, root);
