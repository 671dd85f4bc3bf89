/** Calls of the HTTP API: JSON in, JSON out, refusals as `Refusal`. */
import { currentKey } from "../live/live";
import type { Problem } from "../live/wire";
import { words } from "../messages.en";

/** What the server refused, with its own words. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
    this.name = "Refusal";
  }
}

/** Returns what was refused; anything else that went wrong becomes a problem, too. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  return { status: 0, code: "unreachable", message: words.errors.unreachable };
}

/** An answer with the version that it was read at. */
export interface Versioned<T> {
  readonly body: T;
  readonly etag: string | null;
}

interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Makes a call and returns its answer with its version. */
export async function call<T>(what: Call): Promise<Versioned<T>> {
  const headers: Record<string, string> = { accept: "application/json", ...what.headers };
  const key = currentKey();
  if (key !== null) headers.authorization = `Bearer ${key}`;
  const request: RequestInit = { method: what.method, headers, signal: what.signal ?? null };
  if (what.body !== undefined) {
    headers["content-type"] = "application/json";
    request.body = JSON.stringify(what.body);
  }
  const response = await fetch(`/api/v1${what.path}`, request);
  const body: unknown = await response.json().catch((error: unknown) => {
    // An answer that broke off is none; a refusal is one without its words, too.
    if (response.ok) throw error;
    return null;
  });
  if (!response.ok) throw new Refusal(problemIn(body, response.status));
  return { body: body as T, etag: response.headers.get("etag") };
}

function problemIn(body: unknown, status: number): Problem {
  if (typeof body === "object" && body !== null && "message" in body) return body as Problem;
  return { status, code: "internal", message: words.errors.unexplained(status) };
}

/** Reads. */
export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
  (await call<T>(signal ? { method: "GET", path, signal } : { method: "GET", path })).body;

/** Posts. */
export const post = async <T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> =>
  (await call<T>({ method: "POST", path, body, ...(signal && { signal }) })).body;
