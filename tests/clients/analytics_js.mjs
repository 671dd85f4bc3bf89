// Sends track calls with `@segment/analytics-next` in a page; says which it gave up.
import { JSDOM } from "jsdom";

const [url, key, count] = process.argv.slice(2);
const page = new JSDOM("<!doctype html><script></script>", { url: `${url}/page`, pretendToBeVisual: true });
for (const name of ["window", "document", "location", "navigator", "localStorage"]) {
  const value = name === "window" ? page.window : page.window[name];
  Object.defineProperty(globalThis, name, { value, configurable: true });
}
page.window.fetch = fetch;
const { AnalyticsBrowser } = await import("@segment/analytics-next");
const host = new URL(url).host;
const [analytics] = await AnalyticsBrowser.load(
  { writeKey: key, cdnURL: url },
  { integrations: { "Segment.io": { apiHost: `${host}/v1`, protocol: "http" } }, retryQueue: true },
);
// The library hands an event on before it has an answer, and sends again by itself: when nothing
// more is on its way, it has delivered or given up.
let open = 0;
let quietSince = Date.now();
const plain = globalThis.fetch;
const answered = new Map();
globalThis.fetch = page.window.fetch = async (target, options) => {
  const n = JSON.parse(options?.body ?? "{}").properties?.n;
  open += 1;
  try {
    const answer = await plain(target, options);
    if (answer.status === 200) answered.set(n, true);
    return answer;
  } finally {
    open -= 1;
    quietSince = Date.now();
  }
};
for (let n = 0; n < Number(count); n += 1) {
  analytics.track("analytics_js", { n });
  if (n % 20 === 19) await new Promise((resolve) => setTimeout(resolve, 20));
}
const deadline = Date.now() + 90_000;
while (Date.now() < deadline && answered.size < Number(count)) {
  if (open === 0 && Date.now() - quietSince > 20_000) break;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const gaveUp = Array.from({ length: Number(count) }, (_, n) => n).filter((n) => !answered.has(n));
console.log(JSON.stringify({ sent: Number(count), gave_up: gaveUp }));
process.exit(0);
