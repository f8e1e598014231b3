/** The way to a claim server. */

import { claimBody } from "./ask.js";
import type { Claim, Options, Terms } from "./ask.js";
import { claimMany } from "./batch.js";
import { decided, moment, told } from "./decision.js";
import type { Answer, Busy, Decision, Held, Mismatch, Recorded, Replay } from "./decision.js";
import { Lost, Refused } from "./errors.js";
import type { SemelError } from "./errors.js";
import type { Key } from "./key.js";
import { run } from "./once.js";
import type { Running } from "./once.js";
import { outcomeAsk } from "./outcome.js";
import type { Notes } from "./outcome.js";
import { Permit } from "./permit.js";
import type { PermitAnswer } from "./permit.js";
import { isSettled, recordAnswer } from "./record.js";
import type { RecordAnswer, StoredRecord } from "./record.js";
import { Retry, pause } from "./retry.js";
import { Transport } from "./transport.js";

/** How long the server waits in one request; longer waits are several. */
const WAIT_MAX_MS = 60_000;
/** How long to pause if the server did not wait as long as it was asked to. */
const EARLY_PAUSE_MS = 250;

/** How to reach a server. */
export interface ClientOptions {
  /** Where the server wants one. */
  readonly token?: string;
  /** How long one request may take, beside what it waits on purpose; 10 seconds unless told. */
  readonly timeoutMs?: number;
  /** How often an ask is made again; 4 unless told. */
  readonly retries?: number;
  /** Who asks, for people that look. */
  readonly owner?: string;
}

/** A claim server. Lost replies are asked for again with the same key and permit id, so that nothing runs twice because of them. */
export class Client {
  readonly transport!: Transport;
  readonly retry: Retry;
  readonly terms: Terms;

  constructor(url: string, { token, timeoutMs = 10_000, retries = 4, owner }: ClientOptions = {}) {
    // Not enumerable: a client that is logged must not show its token.
    Object.defineProperty(this, "transport", { value: new Transport(url, token, timeoutMs) });
    this.retry = new Retry(retries);
    this.terms = owner === undefined ? {} : { owner };
  }

  /** Asks to run. `waitMs`: how long to wait for another caller to settle before the answer is busy. */
  async claim(key: Key, { waitMs = 0, ...options }: Options & { readonly waitMs?: number } = {}): Promise<Decision> {
    const body = await claimBody({ ...this.terms, ...options, key });
    let askedAt = 0;
    const ask = (patience: number): Promise<Answer & PermitAnswer> => {
      askedAt = performance.now();
      return this.post("/v1/claim", body, patience);
    };
    const answer = await patiently(ask, waitMs, ({ decision }) => decision === "busy", this.retry);
    return decided(answer, () => new Permit(this.transport, this.retry, answer, askedAt));
  }

  /** Asks for many in few requests. The answers are in order; where one is an error, the others still count. */
  claimMany(claims: readonly Claim[]): Promise<(Decision | SemelError)[]> {
    return claimMany(this, claims);
  }

  /** Claims and completes in one go, for what has happened already: an event that was seen, say. */
  async recordOnce(
    key: Key,
    value: unknown = null,
    { kind, references, details, ...options }: Options & Notes = {},
  ): Promise<Recorded | Replay | Busy | Mismatch | Held> {
    const outcome = { ...outcomeAsk(value, {}), kind, references, details };
    const body = { ...(await claimBody({ ...this.terms, ...options, key })), outcome };
    const answer = await this.retry.ask(() => this.post<Answer>("/v1/record_once", body));
    if (answer.decision === "recorded") {
      return { decision: "recorded", rememberedUntil: moment(answer.remembered_until), id: answer.id };
    }
    return told(answer);
  }

  /**
   * The record of a key (or of a record's id), without claiming it. `waitMs`: how long to wait for a running one to
   * settle. Null if there is no record.
   */
  async get(key: Key | string, { waitMs = 0 }: { readonly waitMs?: number } = {}): Promise<StoredRecord | null> {
    const look = async (patience: number): Promise<StoredRecord> => {
      const target = recordTarget(key, patience);
      const timeoutMs = this.transport.timeoutMs + patience;
      return recordAnswer((await this.transport.get<{ record: RecordAnswer }>(target, timeoutMs)).record);
    };
    try {
      return await patiently(look, waitMs, (record) => !isSettled(record), this.retry);
    } catch (error) {
      if (error instanceof Refused && error.code === "not_found") {
        return null;
      }
      throw error;
    }
  }

  /** Goes on under a permit that another process handed on. Renews it, so `Lost` if it is not good any more. */
  async permit(text: string): Promise<Permit> {
    let askedAt = 0;
    const answer = await this.retry.ask(() => {
      askedAt = performance.now();
      return this.post<PermitAnswer & { decision: string }>("/v1/resume", { permit: text, outcome_as: "base64" });
    });
    if (answer.decision === "lost") {
      throw new Lost("the permit is not good any more: another run took over, or the record is gone");
    }
    if (answer.decision === "done") {
      throw new Lost("the permit is not good any more: the run was completed under it");
    }
    return new Permit(this.transport, this.retry, answer, askedAt);
  }

  /**
   * Runs `work` once for this key, or hands back the value that it had (as JSON: a Date comes back as text).
   *
   * An error from the work releases the key (or is stored, with `storeFailure`) and is thrown. Work that does not know
   * whether its effect landed calls `permit.hold` before it throws. `NotRun`: another caller runs, the request is another
   * one, or somebody must look. `Lost` or `Unknown`: the work ran; do not report success.
   */
  run<T>(key: Key, work: (permit: Permit) => T | Promise<T>, options: Options & Running = {}): Promise<T> {
    return run(this, key, work, options);
  }

  private post<A>(path: string, body: object, patience = 0): Promise<A> {
    const waiting = patience > 0 ? { wait_ms: Math.round(patience) } : {};
    return this.transport.post<A>(path, { ...body, ...waiting }, this.transport.timeoutMs + patience);
  }
}

function recordTarget(key: Key | string, patience: number): string {
  const options = new URLSearchParams();
  if (typeof key !== "string") {
    key.scope?.forEach((part) => options.append("scope", part));
    options.append("operation", key.operation);
    options.append("name", key.name);
  }
  options.append("outcome_as", "base64");
  if (patience > 0) {
    options.append("wait", `${Math.round(patience)}ms`);
  }
  return `${typeof key === "string" ? `/v1/records/${encodeURIComponent(key)}` : "/v1/record"}?${options.toString()}`;
}

/** Asks until the answer is a last one or the wait is over; each request waits for as long as the server lets it. */
async function patiently<T>(
  ask: (patience: number) => Promise<T>,
  waitMs: number,
  isOpen: (answer: T) => boolean,
  retry: Retry,
): Promise<T> {
  const until = performance.now() + waitMs;
  for (;;) {
    const patience = Math.min(Math.max(0, until - performance.now()), WAIT_MAX_MS);
    const answer = await retry.ask(() => ask(patience));
    const left = until - performance.now();
    if (!isOpen(answer) || left <= 0) {
      return answer;
    }
    // A server with too many waiting answers at once: it must not be asked again at once.
    await pause(Math.min(left, EARLY_PAUSE_MS));
  }
}
