// Exports points of a counter with `@opentelemetry/exporter-metrics-otlp-http`; says which it gave up.
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";

const [url, key, count] = process.argv.slice(2);
const exporter = new OTLPMetricExporter({
  url: `${url}/v1/metrics`,
  headers: { Authorization: `Bearer ${key}` },
});
const resource = resourceFromAttributes({ "service.name": "otlp_node" });
const PER_REQUEST = 10;
const gaveUp = [];

async function collected(start) {
  const memory = new InMemoryMetricExporter(1);
  const reader = new PeriodicExportingMetricReader({ exporter: memory, exportIntervalMillis: 600_000 });
  const provider = new MeterProvider({ resource, readers: [reader] });
  const counter = provider.getMeter("clients").createCounter("otlp_node");
  for (let n = start; n < start + PER_REQUEST; n += 1) counter.add(1, { n });
  await reader.forceFlush();
  const [made] = memory.getMetrics();
  await provider.shutdown();
  return made;
}

for (let start = 0; start < Number(count); start += PER_REQUEST) {
  const made = await collected(start);
  const result = await new Promise((resolve) => exporter.export(made, resolve));
  if (result.code !== 0) for (let n = start; n < start + PER_REQUEST; n += 1) gaveUp.push(n);
}
console.log(JSON.stringify({ sent: Number(count), gave_up: gaveUp }));
process.exit(0);
