/** The dialogs that every page has: find, keys, more. */
import { signal } from "@preact/signals";
import { keysOn, setKeysOn } from "../lib/keys";
import { words } from "../messages.en";
import { PAGES } from "../pages";
import { Find } from "./find";
import { MoreMenu } from "./header";
import { Modal } from "./modal";

export type DialogName = "find" | "keys" | "more";

const open = signal<DialogName | null>(null);

/** Opens a dialog in place of the one that is open. */
export function openDialog(name: DialogName): void {
  open.value = name;
}

const close = () => {
  open.value = null;
};

/** Whichever dialog is open. */
export function Dialogs() {
  switch (open.value) {
    case "find":
      return (
        <Modal key="find" close={close} title={words.find.title} wide>
          <Find close={close} />
        </Modal>
      );
    case "keys":
      return (
        <Modal key="keys" close={close} title={words.keys.title}>
          <KeyList />
        </Modal>
      );
    case "more":
      return (
        <Modal key="more" close={close} title={words.nav.more}>
          <MoreMenu close={close} />
        </Modal>
      );
    default:
      return null;
  }
}

function KeyList() {
  const pages = PAGES.map(({ keys, name }) => [keys, name?.toLowerCase()]);
  const rows = [words.keys.find, ...pages.filter(([keys]) => keys), ...words.keys.rows];
  return (
    <>
      <dl class="kv">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" class="btn" onClick={() => setKeysOn(!keysOn.value)}>
        {keysOn.value ? words.keys.off : words.keys.on}
      </button>
    </>
  );
}
