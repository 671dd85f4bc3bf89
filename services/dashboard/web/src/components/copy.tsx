/** Copying to the clipboard, with a word that says it has happened. */
import { useEffect, useState } from "preact/hooks";
import { words } from "../messages.en";
import { Icon } from "./icon";

const SAID_MS = 2_000;

/** Copies a text; also on pages served without TLS, where the newer way is closed. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard && isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

interface CopyProps {
  readonly text: string;
  readonly label?: string;
  readonly class?: string;
  readonly testid?: string;
}

/** A button that copies. */
export function Copy({ text, testid, label = words.live.copy, ...rest }: CopyProps) {
  const [said, setSaid] = useState(false);
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button
      type="button"
      class={`btn sm ${rest.class ?? ""}`}
      data-testid={testid}
      onClick={() => copyText(text).then(() => setSaid(true))}
    >
      <Icon name={said ? "check" : "copy"} small />
      <span aria-live="polite">{said ? words.live.copied : label}</span>
    </button>
  );
}
