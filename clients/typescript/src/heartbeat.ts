/** The lease while work runs: renewed at a third of it, and the work told when it is lost. */

import { Lost, SemelError } from "./errors.js";
import type { Permit } from "./permit.js";

/** Keeps a lease until it is stopped. Its end does not release the permit. Work that blocks the event loop blocks it, too. */
export class Heartbeat {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hasEnded = false;

  constructor(private readonly permit: Permit) {
    this.schedule();
  }

  /** Renews no more. A renewal in flight is not waited for: the outcome should not wait for it. */
  stop(): void {
    this.hasEnded = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    if (!this.hasEnded) {
      const { leaseMs, goodUntil } = this.permit;
      this.timer = setTimeout(() => void this.beat(), pauseMs(leaseMs, goodUntil, performance.now()));
    }
  }

  private async beat(): Promise<void> {
    const left = this.permit.goodUntil - performance.now();
    if (left <= 0) {
      this.permit.markLost();
      return;
    }
    try {
      if (!(await this.permit.renewOnce(left))) {
        // Completed meanwhile: nothing is left to renew, and nothing is lost.
        return;
      }
    } catch (error) {
      if (error instanceof Lost) {
        return;
      }
      if (!(error instanceof SemelError)) {
        throw error;
      }
      // Asked again soon; the deadline says when it is too late.
    }
    this.schedule();
  }
}

/**
 * How long until the next renewal: when a third of the lease is used. After a failed one that moment is past: soon then,
 * not at once, and never later than the deadline.
 */
export function pauseMs(leaseMs: number, goodUntil: number, now: number): number {
  const third = leaseMs / 3;
  const due = Math.max(goodUntil - 2 * third, now + third / 8);
  return Math.max(0, Math.min(due, goodUntil) - now);
}
