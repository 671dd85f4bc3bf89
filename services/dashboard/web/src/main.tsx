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
import { startSession } from "./lib/session";
import { startLive } from "./live/live";

mendLanguage();
startRouter();
startKeys();
watchTheme();
startLive();
startAlerts();
startSession();

const root = document.getElementById("app");
if (root) render(<App />, root);
