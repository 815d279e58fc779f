/**
 * State machine under test: registers, with one session per client, so that a repeated request takes effect once
 * (thesis §6.3).
 */
export interface Command {
  readonly client: string;
  readonly sequence: number;
  readonly key: string;
  readonly kind: 'write' | 'cas';
  readonly expected: number;
  readonly value: number;
}

export interface KvState {
  readonly registers: ReadonlyMap<string, number>;
  readonly sessions: ReadonlyMap<string, { readonly sequence: number; readonly result: number }>;
}

export const emptyKv: KvState = { registers: new Map(), sessions: new Map() };

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const decoded = new WeakMap<Uint8Array, Command>();

export function encodeCommand(command: Command): Uint8Array {
  return encoder.encode(JSON.stringify(command));
}

export function decodeCommand(data: Uint8Array): Command {
  let command = decoded.get(data);
  if (command === undefined) {
    command = JSON.parse(decoder.decode(data)) as Command;
    decoded.set(data, command);
  }
  return command;
}

export class Kv {
  readonly #registers: Map<string, number>;
  readonly #sessions: Map<string, { readonly sequence: number; readonly result: number }>;

  constructor(state: KvState) {
    this.#registers = new Map(state.registers);
    this.#sessions = new Map(state.sessions);
  }

  /** Applies a command and returns the previous value of the register. */
  apply({ client, sequence, key, kind, expected, value }: Command): number {
    const session = this.#sessions.get(client);
    if (session !== undefined && session.sequence >= sequence) return session.result;
    const result = this.read(key);
    if (kind === 'write' || result === expected) this.#registers.set(key, value);
    this.#sessions.set(client, { sequence, result });
    return result;
  }

  read(key: string): number {
    return this.#registers.get(key) ?? 0;
  }

  state(): KvState {
    return { registers: new Map(this.#registers), sessions: new Map(this.#sessions) };
  }

  digest(): string {
    return JSON.stringify([[...this.#registers].sort(), [...this.#sessions].sort()]);
  }
}
