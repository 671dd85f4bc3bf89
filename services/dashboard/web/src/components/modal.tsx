/** A dialog over the page. Native `dialog` keeps the focus and closes on Escape. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { words } from "../messages.en";
import { Icon } from "./icon";

interface ModalProps {
  readonly title: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
  close(): void;
}

/** Shows its children until it is closed; then the focus is back where it was. */
export function Modal({ title, wide = false, children, close }: ModalProps) {
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
      // Before the browser hides it: whoever opens one at once would be taken to mean this one, and
      // what comes of it later is of one that is gone.
      onCancel={close}
      onClose={() => dialog.current !== null && close()}
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
