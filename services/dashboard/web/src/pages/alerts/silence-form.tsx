/** The dialog that silences alerts, with what it would hide. */
import { useEffect, useState } from "preact/hooks";
import { post, problemOf } from "../../api/client";
import type { Rule, Silence, SilencePreview } from "../../api/shapes";
import { Modal } from "../../components/modal";
import { Refused } from "../../components/notes";
import { useOpen } from "../../components/use-open";
import type { Problem } from "../../live/wire";
import { actWords } from "../../messages.channels.en";
import type { Asked } from "./silence";
import { useSending } from "./use-sending";

const said = actWords.form;
const PAUSE_MS = 250;

interface FormProps {
  readonly first: Asked;
  readonly rules: readonly Rule[];
  /** Called when the silence is in force. */
  done(): void;
  close(): void;
}

/** Which alerts, for how long, why. */
export default function SilenceForm({ first, rules, done, close }: FormProps) {
  const [asked, setAsked] = useState(first);
  const [length, setLength] = useState("1h");
  const [reason, setReason] = useState("");
  const { send, busy, problem } = useSending();
  const open = useOpen();
  const over = () => {
    done();
    // It may have been closed meanwhile, and another one be open by now.
    if (open.current) close();
  };
  const whole = isNamed(asked);
  return (
    <Modal title={said.title} close={close}>
      <form
        class="stack"
        data-testid="silence-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!whole) return;
          const body = { ...bodyOf(asked), for: length, reason };
          void send(() => post<Silence>("/silences", body), over);
        }}
      >
        {problem && <Refused problem={problem} />}
        <Which asked={asked} rules={rules} onChange={setAsked} />
        <Length value={length} onChange={setLength} />
        <div class="form-row wide">
          <label for="silence-reason">{said.reason}</label>
          <input
            id="silence-reason"
            class="field"
            maxLength={1_000}
            placeholder={said.reasonHint}
            value={reason}
            onInput={(input) => setReason(input.currentTarget.value)}
          />
        </div>
        <Hides asked={asked} />
        <p class="t3 s">{said.told}</p>
        <button
          type="submit"
          class="btn go tall"
          data-testid="silence-store"
          aria-disabled={busy || !whole}
        >
          {busy ? said.storing : said.store}
        </button>
      </form>
    </Modal>
  );
}

interface LengthProps {
  readonly value: string;
  onChange(value: string): void;
}

function Length({ value, onChange }: LengthProps) {
  return (
    <div class="form-row wide">
      <label for="silence-length">{said.length}</label>
      <select
        id="silence-length"
        class="sel"
        value={value}
        onChange={(change) => onChange(change.currentTarget.value)}
      >
        {said.lengths.map(([length, text]) => (
          <option key={length} value={length}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface WhichProps {
  readonly asked: Asked;
  readonly rules: readonly Rule[];
  onChange(asked: Asked): void;
}

function Which({ asked, rules, onChange }: WhichProps) {
  const names = new Set([...rules.map((rule) => rule.name), ...(asked.rule ? [asked.rule] : [])]);
  return (
    <>
      <div class="form-row wide">
        <label for="silence-rule">{said.rule}</label>
        <select
          id="silence-rule"
          class="sel"
          value={asked.rule}
          onChange={(change) => onChange({ ...asked, rule: change.currentTarget.value })}
        >
          <option value="">{said.anyRule}</option>
          {[...names].sort().map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <div class="form-row wide">
        <label for="silence-where">{said.where}</label>
        <input
          id="silence-where"
          class="field mono"
          spellcheck={false}
          placeholder={said.whereHint}
          value={asked.where}
          onInput={(input) => onChange({ ...asked, where: input.currentTarget.value })}
        />
      </div>
    </>
  );
}

/** What would be hidden, a moment after the last change. */
function Hides({ asked }: { asked: Asked }) {
  const [found, setFound] = useState<SilencePreview | Problem | null>(null);
  const { rule, where } = asked;
  const named = isNamed(asked);
  useEffect(() => {
    setFound(null);
    if (!named) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<SilencePreview>("/silences/preview", bodyOf({ rule, where }), abort.signal).then(
        setFound,
        (error: unknown) => !abort.signal.aborted && setFound(problemOf(error)),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [rule, where]);
  return (
    <p class="t2" role="status" data-testid="silence-hides">
      {textOf(named, found)}
    </p>
  );
}

function textOf(named: boolean, found: SilencePreview | Problem | null): string {
  if (!named) return said.named;
  if (found === null) return said.asking;
  return "firing" in found ? said.hides(found.firing, found.day) : found.message;
}

/** Tells whether it is of something: to say nothing would silence everything. */
const isNamed = ({ rule, where }: Asked) => rule !== "" || where.trim() !== "";
const bodyOf = ({ rule, where }: Asked) => ({ rule: rule || null, where });
