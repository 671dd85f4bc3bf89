/** Commands that send one event, for the clients that a reader may have. Pure. */

/** Stands in a command for a key that the reader has to put in. */
export const KEY_PLACE = "WEIR_API_KEY";

export const CLIENTS = [
  ["curl", "curl"],
  ["python", "Python"],
  ["javascript", "JavaScript"],
  ["cloudevents", "CloudEvents"],
  ["ndjson", "NDJSON"],
] as const;

export type Client = (typeof CLIENTS)[number][0];

const EVENT = '{"type":"order.placed","subject":"u42","data":{"total":12.5,"channel":"web"}}';

/** Returns the command of a client. */
export function commandOf(client: Client, url: string, key: string): string {
  switch (client) {
    case "curl":
      return curl(
        url,
        key,
        "application/json",
        `'${EVENT.replace(',"data"', ',\n       "data"')}'`,
      );
    case "cloudevents":
      return curl(
        url,
        key,
        "application/cloudevents+json",
        `'{"specversion":"1.0","id":"'$(date +%s%N)'","source":"/shop","type":"order.placed",\n       "subject":"u42","data":{"total":12.5,"channel":"web"}}'`,
      );
    case "ndjson":
      return `printf '%s\\n' '${EVENT}' '${EVENT.replace("12.5", "88")}' |\n${curl(url, key, "application/x-ndjson", "@-").replace("-d", "--data-binary")}`;
    case "python":
      return `import json, urllib.request

event = {"type": "order.placed", "subject": "u42",
         "data": {"total": 12.5, "channel": "web"}}
request = urllib.request.Request(
    "${url}", json.dumps(event).encode(),
    {"Authorization": "Bearer ${key}",
     "Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())`;
    case "javascript":
      return `await fetch("${url}", {
  method: "POST",
  headers: { Authorization: "Bearer ${key}",
             "Content-Type": "application/json" },
  body: JSON.stringify({ type: "order.placed", subject: "u42",
                         data: { total: 12.5, channel: "web" } }),
}).then((answer) => answer.json());`;
  }
}

function curl(url: string, key: string, type: string, body: string): string {
  return `curl -X POST ${url} \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: ${type}' \\
  -d ${body}`;
}

export type Token = readonly [kind: "" | "kw" | "fl" | "st", text: string];

/** Returns a command in pieces for coloring: program words, flags, strings, the rest. */
export function tokensOf(text: string): readonly Token[] {
  const found: Token[] = [];
  const pattern =
    /('[^']*'|"[^"]*")|(\bcurl\b|\bprintf\b|\bimport\b|\bawait\b|\bprint\b)|(?<=\s)(-{1,2}[A-Za-z][\w-]*)/g;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) found.push(["", text.slice(at, match.index)]);
    const kind = match[1] ? "st" : match[2] ? "kw" : "fl";
    found.push([kind, match[0]]);
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push(["", text.slice(at)]);
  return found;
}
