/** What the address of the sign-in page says. Pure. */

/** Returns the token in a fragment such as `#once=…`, or null. */
export function onceOf(fragment: string): string | null {
  const found = new URLSearchParams(fragment.replace(/^#/, "")).get("once");
  return found === "" ? null : found;
}

/** Returns where to go after signing in: a path of this site, never another site. */
export function backTo(params: URLSearchParams): string {
  const wanted = params.get("to") ?? "/";
  return /^\/(?![/\\])/.test(wanted) ? wanted : "/";
}
