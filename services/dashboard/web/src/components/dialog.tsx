/** What the dialogs of every page show. Fetched once the page is there: no page begins with one. */
import { keysOn, setKeysOn } from "../lib/keys";
import { visit } from "../lib/session";
import { words } from "../messages.en";
import { PAGES } from "../pages";
import type { DialogName } from "./dialogs";
import { Find } from "./find";
import { MoreMenu } from "./header";
import { Modal } from "./modal";

interface DialogProps {
  readonly name: DialogName;
  close(): void;
}

/** The dialog of that name. */
export default function Dialog({ name, close }: DialogProps) {
  switch (name) {
    case "find":
      return (
        <Modal key="find" close={close} title={words.find.title} wide>
          <Find key={visit.value} close={close} />
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
