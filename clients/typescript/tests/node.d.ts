/** The few things of Node that the tests use, so that they compile without a package of types. */

declare module "node:test" {
  export function test(name: string, work: () => void | Promise<void>): Promise<void>;
}

declare module "node:assert/strict" {
  function equal(found: unknown, wanted: unknown, message?: string): void;
  function deepEqual(found: unknown, wanted: unknown, message?: string): void;
  function ok(found: unknown, message?: string): asserts found;
  function rejects(asked: Promise<unknown>, check: (error: unknown) => boolean): Promise<void>;
  function match(found: string, wanted: RegExp): void;
  const assert: { equal: typeof equal; deepEqual: typeof deepEqual; ok: typeof ok; rejects: typeof rejects; match: typeof match };
  export default assert;
  export { deepEqual, equal, match, ok, rejects };
}

declare module "node:net" {
  export interface Socket {
    on(event: "data", listener: (bytes: Uint8Array) => void): void;
    on(event: "close" | "error", listener: () => void): void;
    write(bytes: Uint8Array): void;
    destroy(): void;
  }
  export interface Server {
    listen(port: number, host: string, listening: () => void): void;
    address(): { port: number };
    close(): void;
  }
  export function createServer(connected: (socket: Socket) => void): Server;
  export function connect(port: number, host: string): Socket;
}

declare module "node:child_process" {
  export function execFile(
    program: string,
    args: readonly string[],
    done: (error: Error | null, out: string) => void,
  ): void;
}

declare module "node:fs" {
  export function appendFileSync(path: string, text: string): void;
}

declare const process: {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execPath: string;
};
