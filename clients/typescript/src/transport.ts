/** Requests to the server, by fetch, which keeps connections alive; honest about what a failure proves. */

import { Unavailable, Unknown, fromProblem } from "./errors.js";
import { toJson } from "./outcome.js";

/** What Node and Deno say when no connection came about: then nothing can have been done. */
const NOT_REACHED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

/** One server's address, and how to speak to it. */
export class Transport {
  private readonly url: string;
  private readonly headers: Record<string, string>;

  constructor(url: string, token: string | undefined, readonly timeoutMs: number) {
    if (!/^https?:\/\/[^/]/.test(url)) {
      throw new TypeError(`${url} is no address of a server: write http://127.0.0.1:4747`);
    }
    this.url = url.replace(/\/+$/, "");
    this.headers = { "content-type": "application/json", accept: "application/json" };
    if (token !== undefined) {
      this.headers["authorization"] = `Bearer ${token}`;
    }
  }

  /** Asks, once. */
  post<A>(path: string, body: unknown, timeoutMs = this.timeoutMs): Promise<A> {
    return this.ask<A>("POST", path, toJson(body), timeoutMs);
  }

  /** Looks, once. */
  get<A>(path: string, timeoutMs = this.timeoutMs): Promise<A> {
    return this.ask<A>("GET", path, null, timeoutMs);
  }

  private async ask<A>(method: string, path: string, body: string | null, timeoutMs: number): Promise<A> {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), timeoutMs);
    let response: Response;
    let text: string;
    try {
      const { headers } = this;
      response = await fetch(this.url + path, { method, headers, body, signal: patience.signal, redirect: "error" });
      text = await response.text();
    } catch (error) {
      throw failure(error);
    } finally {
      clearTimeout(timer);
    }
    return answer<A>(response, text);
  }
}

function failure(error: unknown): Unavailable | Unknown {
  const { cause } = error as { cause?: { code?: string } };
  if (cause?.code !== undefined && NOT_REACHED.includes(cause.code)) {
    return new Unavailable(`nothing was done: the server cannot be reached (${cause.code})`, 0, error);
  }
  return new Unknown(`the reply was lost (${String(error)}): ask again with the same key`, error);
}

function answer<A>(response: Response, text: string): A {
  const members = parsed(text);
  if (response.ok) {
    if (members !== null) {
      return members as unknown as A;
    }
    throw new Unknown("the answer is no JSON object: is this a semel server?");
  }
  const detail = members?.["detail"] ?? members?.["title"] ?? response.statusText;
  const code = members?.["code"];
  throw fromProblem(response.status, typeof code === "string" ? code : undefined, String(detail), retryAfter(response));
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after") ?? "0");
  return Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : 0;
}
