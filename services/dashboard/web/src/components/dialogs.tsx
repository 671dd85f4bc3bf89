/** The dialogs that every page has: find, keys, more. Native `dialog` keeps the focus. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { keysOn, setKeysOn } from "../lib/keys";
import { words } from "../messages.en";
import { PAGES } from "../pages";
import { Find } from "./find";
import { MoreMenu } from "./header";
import { Icon } from "./icon";

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
        <Modal key="find" title={words.find.title} wide>
          <Find close={close} />
        </Modal>
      );
    case "keys":
      return (
        <Modal key="keys" title={words.keys.title}>
          <KeyList />
        </Modal>
      );
    case "more":
      return (
        <Modal key="more" title={words.nav.more}>
          <MoreMenu close={close} />
        </Modal>
      );
    default:
      return null;
  }
}

interface ModalProps {
  readonly title: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

function Modal({ title, wide = false, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself
    <dialog
      ref={dialog}
      class={wide ? "modal wide" : "modal"}
      aria-label={title}
      onClose={close}
      onClick={(click) => click.target === dialog.current && close()}
    >
      <div class="modal-head">
        <h2>{title}</h2>
        <button type="button" class="iconbtn" aria-label={words.close} onClick={close}>
          <Icon name="x" />
        </button>
      </div>
      {children}
    </dialog>
  );
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
