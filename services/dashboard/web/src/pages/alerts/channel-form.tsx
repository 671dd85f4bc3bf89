/** The dialog that makes a channel. Its secret is a file of the alerts job, named here only. */
import { useState } from "preact/hooks";
import { call, problemOf } from "../../api/client";
import type { Definition } from "../../api/shapes";
import { Modal } from "../../components/modal";
import { Refused } from "../../components/notes";
import { Seg } from "../../components/seg";
import type { Problem } from "../../live/wire";
import { actWords } from "../../messages.channels.en";
import { type Draft, definitionOf, isWhole } from "./channel";

const said = actWords.channel;

interface FormProps {
  done(): void;
  close(): void;
}

/** Its name, its way, and what that needs. */
export function ChannelForm({ done, close }: FormProps) {
  const [draft, setDraft] = useState<Draft>({
    ...{ name: "", way: "webhook", url: "", secret: "", follow: false },
  });
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const store = () => {
    if (busy || !isWhole(draft)) return;
    setBusy(true);
    setProblem(null);
    call<Definition>({
      method: "PUT",
      path: `/definitions/channel/${encodeURIComponent(draft.name)}`,
      body: { text: definitionOf(draft) },
      headers: { "if-none-match": "*" },
    }).then(
      () => {
        done();
        close();
      },
      (error: unknown) => {
        setBusy(false);
        setProblem(problemOf(error));
      },
    );
  };
  return (
    <Modal title={said.title} close={close}>
      <form
        class="stack"
        data-testid="channel-form"
        onSubmit={(event) => {
          event.preventDefault();
          store();
        }}
      >
        {problem && <Refused problem={problem} />}
        <Line id="name" label={said.name} value={draft.name} onInput={(name) => change({ name })} />
        <Seg
          label={said.way}
          value={draft.way}
          choices={[
            { value: "webhook" as const, text: said.webhook },
            { value: "apprise" as const, text: said.apprise },
          ]}
          onPick={(way) => change({ way })}
        />
        {draft.way === "webhook" && (
          <Line
            id="url"
            label={said.url}
            value={draft.url}
            hint={said.urlHint}
            onInput={(url) => change({ url })}
          />
        )}
        <Line
          id="secret"
          label={said.secret}
          value={draft.secret}
          hint={said.secretHint}
          onInput={(secret) => change({ secret })}
        />
        <p class="t3 s">{said.secretOf[draft.way]}</p>
        <label class="row">
          <input
            type="checkbox"
            checked={draft.follow}
            onChange={(box) => change({ follow: box.currentTarget.checked })}
          />
          {said.follow}
        </label>
        <button
          type="submit"
          class="btn go tall"
          data-testid="channel-store"
          aria-disabled={busy || !isWhole(draft)}
        >
          {busy ? said.storing : said.store}
        </button>
      </form>
    </Modal>
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
