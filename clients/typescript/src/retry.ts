/** Asking again: with backoff and jitter, and without forgetting that an earlier try may have taken. */

import { Refused, Unavailable, Unknown } from "./errors.js";

/** A server that asks for more patience than this is told of its caller's error instead. */
const RETRY_AFTER_MAX_MS = 10_000;

/** How often to ask again, and how long to pause: half of each pause is left to chance, so that callers spread out. */
export class Retry {
  constructor(readonly retries = 4, readonly firstMs = 50, readonly longestMs = 2_000) {}

  /** The pauses before each further try. */
  *pauses(): Generator<number, undefined> {
    for (let number = 0; number < this.retries; number += 1) {
      const whole = Math.min(this.longestMs, this.firstMs * 2 ** number);
      yield whole * (0.5 + Math.random() / 2);
    }
    return undefined;
  }

  /**
   * Asks until there is an answer, or the retries are used up. If any try may have taken, the whole may have: an
   * `Unknown` is never forgotten for a later error that says that nothing was done.
   */
  async ask<T>(once: () => Promise<T>, sleep: (ms: number) => Promise<void> = pause): Promise<T> {
    const pauses = this.pauses();
    let unknown: Unknown | undefined;
    for (;;) {
      let last: Unavailable | Unknown;
      try {
        return await once();
      } catch (error) {
        if (error instanceof Refused) {
          throw unknown ?? error;
        }
        if (!(error instanceof Unavailable || error instanceof Unknown)) {
          throw error;
        }
        last = error;
      }
      unknown = last instanceof Unknown ? last : unknown;
      const patience = last instanceof Unavailable ? last.retryAfterMs : 0;
      const next = pauses.next().value;
      if (next === undefined || patience > RETRY_AFTER_MAX_MS) {
        throw unknown ?? last;
      }
      await sleep(Math.max(next, patience));
    }
  }
}

/** Does nothing for a while. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
