/** A channel that is being written, as the definition that is stored. Pure. */

/** What the form holds. */
export interface Draft {
  readonly name: string;
  readonly way: "webhook" | "apprise";
  readonly url: string;
  /** The name of a secret, with or without `secret://` before it. */
  readonly secret: string;
  /** Whether confirmations and amendments are told, too. */
  readonly follow: boolean;
}

const PREFIX = "secret://";

/** Tells whether everything is filled in that this way needs. */
export function isWhole({ name, way, url, secret }: Draft): boolean {
  return name.trim() !== "" && secret.trim() !== "" && (way === "apprise" || url.trim() !== "");
}

/** Returns the text of the definition, as YAML. */
export function definitionOf({ name, way, url, secret, follow }: Draft): string {
  const named = PREFIX + secret.trim().replace(PREFIX, "");
  const lines =
    way === "apprise"
      ? [`apprise: ${quoted(named)}`]
      : ["webhook:", `  url: ${quoted(url.trim())}`, `  secret: ${quoted(named)}`];
  const all = ["kind: channel", `name: ${quoted(name.trim())}`, ...lines];
  return `${[...all, ...(follow ? ["follow: all"] : [])].join("\n")}\n`;
}

/** JSON is YAML: what somebody typed stays one text, whatever is in it. */
const quoted = (text: string) => (/^[a-z0-9_]+$/.test(text) ? text : JSON.stringify(text));
