// Sends events with `cloudevents`, binary and structured in turn. The package sends once and leaves
// it to its user to send the same event again: so does the loop here, and gives up after a minute.
import { CloudEvent, emitterFor, httpTransport, Mode } from "cloudevents";

const [url, key, count] = process.argv.slice(2);
const to = httpTransport(`${url}/v1/events?access_token=${key}`);
const emitters = [Mode.BINARY, Mode.STRUCTURED].map((mode) => emitterFor(to, { mode }));
const gaveUp = [];

// The transport does not fail on an answer that is no success, so it is asked what came back.
async function deliver(n) {
  const event = new CloudEvent({ source: "/clients", type: "cloudevents_node", data: { n } });
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    try {
      const answer = await emitters[n % 2](event);
      if (JSON.parse(answer.body).accepted === 1) return;
    } catch {
      // lost: it may be stored, or not
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  gaveUp.push(n);
}

const LANES = 10;
await Promise.all(
  Array.from({ length: LANES }, async (_, lane) => {
    for (let n = lane; n < Number(count); n += LANES) await deliver(n);
  }),
);
console.log(JSON.stringify({ sent: Number(count), gave_up: gaveUp }));
process.exit(0);
