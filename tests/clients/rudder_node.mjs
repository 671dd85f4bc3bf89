// Sends track calls with `@rudderstack/rudder-sdk-node`; says which it gave up.
import RudderAnalytics from "@rudderstack/rudder-sdk-node";

const [url, key, count] = process.argv.slice(2);
const BATCH = 10;
const gaveUp = [];
const analytics = new RudderAnalytics(key, {
  dataPlaneUrl: url,
  flushAt: BATCH,
  flushInterval: 200,
  errorHandler: () => {}, // without one it ends the process; each call is told by its own answer
});

// Each call has an answer of its own: an error where its batch was given up.
function track(n) {
  return new Promise((resolve) => {
    const call = { userId: `user-${n}`, event: "rudder_node", properties: { n } };
    analytics.track(call, (error) => {
      if (error) gaveUp.push(n);
      resolve();
    });
  });
}

// A batch at a time: all at once, all of them would be given up while the service is busy.
for (let start = 0; start < Number(count); start += BATCH) {
  await Promise.all(Array.from({ length: BATCH }, (_, n) => track(start + n)));
}
console.log(JSON.stringify({ sent: Number(count), gave_up: gaveUp }));
process.exit(0);
