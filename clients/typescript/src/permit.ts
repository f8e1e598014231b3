/** The right to run, and how it ends. */

import { moment } from "./decision.js";
import { Lost } from "./errors.js";
import { Heartbeat } from "./heartbeat.js";
import { derived } from "./key.js";
import { outcomeAsk, storedBytes, toJson, valueMember } from "./outcome.js";
import type { Notes, StoredAnswer } from "./outcome.js";
import type { Retry } from "./retry.js";
import type { Transport } from "./transport.js";

/** A permit as the server grants it. */
export interface PermitAnswer {
  readonly id: string;
  readonly permit: string;
  readonly attempt: number;
  readonly fence: number;
  readonly lease_ms: number;
  readonly steps: readonly (StoredAnswer & { readonly name: string })[];
}

interface Settled {
  readonly decision: string;
  readonly lease_ms: number;
  readonly remembered_until: string | null;
}

/**
 * The right to run. Forgetting it does not release it: a caller that goes away has proved nothing about its effect, and
 * the lease decides.
 */
export class Permit {
  /** The id of the key's record: 64 hex digits. */
  readonly id: string;
  /** The permit itself, to hand to another process (`Client.permit`). Whoever has it may settle the run. */
  readonly text!: string;
  /** The how-manieth run this is. Beyond 1, an earlier run may have left effects behind. */
  readonly attempt: number;
  /** Grows with every grant. Hand it to whatever the work writes to, and have that refuse a lower one. */
  readonly fence: number;
  /** How long the permit is good without renewal. */
  readonly leaseMs: number;
  /** The finished steps of this attempt and of earlier ones. */
  readonly steps: Map<string, Uint8Array>;
  /** Aborted when another run may have taken over. Work that can stop should stop then. */
  readonly lost: AbortSignal;
  /** Until when the lease is good at least, on the clock of `performance.now`. */
  goodUntil: number;
  private readonly losing = new AbortController();
  private readonly transport!: Transport;
  private readonly retry!: Retry;

  constructor(transport: Transport, retry: Retry, answer: PermitAnswer, askedAt: number) {
    // Not enumerable, so that a permit that is logged shows no secret: neither itself nor the bearer token.
    Object.defineProperties(this, {
      transport: { value: transport },
      retry: { value: retry },
      text: { value: answer.permit },
    });
    this.id = answer.id;
    this.attempt = answer.attempt;
    this.fence = exact(answer.fence);
    this.leaseMs = answer.lease_ms;
    this.steps = new Map(answer.steps.map((step) => [step.name, storedBytes(step)]));
    // The deadline starts before the claim was sent: a slow reply must shorten the lease, never stretch it.
    this.goodUntil = askedAt + this.leaseMs;
    this.lost = this.losing.signal;
  }

  /** A key for a system further down, the same on every attempt: `derive("provider.charge")`. */
  derive(label: string): Promise<string> {
    return derived(this.id, label);
  }

  /**
   * Ends the run with an outcome: bytes, or anything that JSON can say. Tells until when it is remembered. `Lost`: do
   * not report success. After `Unavailable` or `Unknown` the same call may be made again.
   */
  async complete(value: unknown = null, notes: Notes = {}): Promise<Date | null> {
    const outcome = outcomeAsk(value, notes);
    return moment((await this.settle("/v1/complete", "the outcome was not stored", { outcome })).remembered_until);
  }

  /**
   * Gives up, so that another may run; to say so twice is harmless. False if there was nothing to give up: another run
   * took over, or the run is completed.
   */
  async release(reason = ""): Promise<boolean> {
    return (await this.ask("/v1/release", { reason })).decision === "released";
  }

  /**
   * Ends the run so that it is not repeated before a person or a probe has decided. False if there was nothing to hold
   * any more, which may be the work of an earlier try of this very call.
   */
  async hold(reason: string): Promise<boolean> {
    return (await this.ask("/v1/hold", { reason })).decision === "held";
  }

  /**
   * Starts the lease anew. `heartbeat` does this by itself. False if the run was completed under this permit: then there
   * is nothing to renew, and nothing is lost.
   */
  async renew(): Promise<boolean> {
    const askedAt = performance.now();
    return this.renewed(await this.settle("/v1/renew", "the lease was not renewed"), askedAt);
  }

  /** The same without asking again: for callers with a schedule of their own. */
  async renewOnce(timeoutMs: number): Promise<boolean> {
    const askedAt = performance.now();
    const answer = await this.transport.post<Settled>("/v1/renew", { permit: this.text }, timeoutMs);
    return this.renewed(this.unlessLost(answer, "the lease was not renewed"), askedAt);
  }

  /**
   * Runs a part of the work, or hands back its value if it was finished before. The value is stored before this returns;
   * it is what JSON makes of it.
   */
  async step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    let stored = this.steps.get(name);
    if (stored === undefined) {
      const text = toJson(await work());
      await this.settle("/v1/step", `the step ${name} was not stored`, { name, ...valueMember(JSON.parse(text)) });
      stored = new TextEncoder().encode(text);
      this.steps.set(name, stored);
    }
    return JSON.parse(new TextDecoder().decode(stored)) as T;
  }

  /** Renews at a third of the lease until it is stopped, and aborts `lost` if that fails for too long. */
  heartbeat(): Heartbeat {
    return new Heartbeat(this);
  }

  /** Whether another run may have taken over: the server said so, or the lease ran out unrenewed. */
  get isLost(): boolean {
    return this.lost.aborted || performance.now() >= this.goodUntil;
  }

  /** Tells the work that it may run no longer. */
  markLost(): void {
    this.losing.abort();
  }

  private ask(path: string, members: object): Promise<Settled> {
    const body = { permit: this.text, ...members };
    return this.retry.ask(() => this.transport.post<Settled>(path, body));
  }

  private async settle(path: string, what: string, members: object = {}): Promise<Settled> {
    return this.unlessLost(await this.ask(path, members), what);
  }

  private renewed(answer: Settled, askedAt: number): boolean {
    if (answer.decision === "done") {
      return false;
    }
    this.goodUntil = askedAt + answer.lease_ms;
    return true;
  }

  private unlessLost(answer: Settled, what: string): Settled {
    if (answer.decision === "lost") {
      this.markLost();
      throw new Lost(`${what}: another run took over, or the record is gone; do not report success`);
    }
    return answer;
  }
}

/** A fence is a number of 64 bits; JavaScript's are exact up to 2^53. A rounded one would let a stale write pass for a fresh one. */
function exact(fence: number): number {
  if (!Number.isSafeInteger(fence)) {
    throw new RangeError(`the fence ${fence} is beyond 2^53, where JavaScript rounds: run this in another language`);
  }
  return fence;
}
