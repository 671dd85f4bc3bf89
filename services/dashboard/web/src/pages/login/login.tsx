/** The door: an API key, or the single-use token of a sign-in link. */
import { useEffect, useState } from "preact/hooks";
import { problemOf } from "../../api/client";
import { Mark } from "../../components/icon";
import { useTitle } from "../../components/lazy";
import { Refused } from "../../components/notes";
import { current, navigate, replacePath } from "../../lib/router";
import { signIn } from "../../lib/session";
import type { Problem } from "../../live/wire";
import { words } from "../../messages.en";
import { backTo, onceOf } from "./address";

export default function Login() {
  useTitle(words.login.title);
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const enter = (credential: { key: string } | { once: string }) => {
    setBusy(true);
    setProblem(null);
    const target = backTo(current.value.params);
    signIn(credential).then(
      // Whoever was sent here may have been fetched back already.
      () => current.peek().path === "/login" && navigate(target),
      (error: unknown) => {
        setBusy(false);
        setProblem(problemOf(error));
      },
    );
  };
  // the link is used once, when the page opens
  useEffect(() => {
    const once = onceOf(location.hash);
    if (once === null) return;
    // Out of the address first: it must not stay in the history.
    replacePath(location.pathname + location.search);
    enter({ once });
  }, []);
  return (
    <form
      class="panel login"
      onSubmit={(submit) => {
        submit.preventDefault();
        enter({ key: key.trim() });
      }}
    >
      <Mark />
      <h1>{words.login.title}</h1>
      {problem && <Refused problem={problem} />}
      <label class="form-row">
        <span>{words.login.key}</span>
        <input
          class="field mono"
          type="password"
          name="key"
          autocomplete="off"
          spellcheck={false}
          required
          data-testid="login-key"
          value={key}
          onInput={(input) => setKey(input.currentTarget.value)}
        />
      </label>
      <p class="t3 s">{words.login.hint}</p>
      <button type="submit" class="btn go" disabled={busy} data-testid="login-enter">
        {busy ? words.login.entering : words.login.enter}
      </button>
      <p class="t3 s">{words.login.demo}</p>
    </form>
  );
}
