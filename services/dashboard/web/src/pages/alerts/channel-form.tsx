/** The dialog that makes a channel. Its secret is a file of the alerts job, named here only. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { madeFrom, pathOf } from "../../api/stored";
import { Modal } from "../../components/modal";
import { Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import { useOpen } from "../../components/use-open";
import { actWords } from "../../messages.channels.en";
import { type Draft, definitionOf, isWhole } from "./channel";
import { useSending } from "./use-sending";

const said = actWords.channel;
const WAYS = [
  { value: "webhook" as const, text: said.webhook },
  { value: "apprise" as const, text: said.apprise },
];

interface FormProps {
  done(): void;
  close(): void;
}

const EMPTY: Draft = { name: "", way: "webhook", url: "", secret: "", follow: false };

/** Its name, its way, and what that needs. */
export function ChannelForm({ done, close }: FormProps) {
  const [draft, setDraft] = useState(EMPTY);
  const { send, busy, problem } = useSending();
  const open = useOpen();
  const over = () => {
    done();
    // It may have been closed meanwhile, and another one be open by now.
    if (open.current) close();
  };
  const whole = isWhole(draft);
  return (
    <Modal title={said.title} close={close}>
      <form
        class="stack"
        data-testid="channel-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (whole) void send(() => stored(draft), over);
        }}
      >
        {problem && <Refused problem={problem} />}
        <Fields draft={draft} onChange={(part) => setDraft({ ...draft, ...part })} />
        <button
          type="submit"
          class="btn go tall"
          data-testid="channel-store"
          aria-disabled={busy || !whole}
        >
          {busy ? said.storing : said.store}
        </button>
      </form>
    </Modal>
  );
}

/** Stores a new channel. */
const stored = (draft: Draft) =>
  call<Definition>({
    method: "PUT",
    path: pathOf("channel", draft.name.trim()),
    body: { text: definitionOf(draft) },
    headers: madeFrom(null),
  });

interface FieldsProps {
  readonly draft: Draft;
  onChange(part: Partial<Draft>): void;
}

function Fields({ draft, onChange }: FieldsProps) {
  const { name, way, url, secret, follow } = draft;
  return (
    <>
      <Line id="name" label={said.name} value={name} onInput={(next) => onChange({ name: next })} />
      <Seg label={said.way} value={way} choices={WAYS} onPick={(next) => onChange({ way: next })} />
      {way === "webhook" && (
        <Line
          id="url"
          label={said.url}
          value={url}
          hint={said.urlHint}
          onInput={(next) => onChange({ url: next })}
        />
      )}
      <Line
        id="secret"
        label={said.secret}
        value={secret}
        hint={said.secretHint}
        onInput={(next) => onChange({ secret: next })}
      />
      <p class="t3 s">{said.secretOf[way]}</p>
      <label class="row">
        <input
          type="checkbox"
          checked={follow}
          onChange={(box) => onChange({ follow: box.currentTarget.checked })}
        />
        {said.follow}
      </label>
    </>
  );
}

interface LineProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly hint?: string;
  onInput(value: string): void;
}

function Line({ id, label, value, hint, onInput }: LineProps) {
  return (
    <div class="form-row wide">
      <label for={`channel-${id}`}>{label}</label>
      <input
        id={`channel-${id}`}
        class="field mono"
        spellcheck={false}
        autocomplete="off"
        placeholder={hint}
        value={value}
        onInput={(input) => onInput(input.currentTarget.value)}
      />
    </div>
  );
}
