/** A way to the server that loses replies: what was asked for happens, and nobody hears of it. */

import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";

import { URL_UNDER_TEST } from "./place.js";

/** Passes everything on, but for the replies that are to be cut. */
export class Cutter {
  /** How many replies are still to be cut. */
  cuts = 0;
  /** How many were. */
  wereCut = 0;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor() {
    this.server = createServer((near) => this.join(near));
  }

  static async start(): Promise<Cutter> {
    const cutter = new Cutter();
    await new Promise<void>((resolve) => cutter.server.listen(0, "127.0.0.1", resolve));
    return cutter;
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  stop(): void {
    this.server.close();
    this.sockets.forEach((socket) => socket.destroy());
  }

  private join(near: Socket): void {
    const { hostname, port } = new URL(URL_UNDER_TEST);
    const far = connect(Number(port), hostname);
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      this.sockets.add(socket);
      socket.on("close", end);
      socket.on("error", end);
    }
    near.on("data", (bytes) => far.write(bytes));
    // The server answers once it has acted: its first byte is the proof that the ask took.
    far.on("data", (bytes) => {
      if (this.cuts > 0) {
        this.cuts -= 1;
        this.wereCut += 1;
        end();
      } else {
        near.write(bytes);
      }
    });
  }
}
