import { Worker } from 'node:worker_threads';
import { CodedError } from '../../../base/errors.ts';
import type { PasswordPort } from '../port.ts';

/** Maximum number of waiting requests. Further requests are rejected, because they would wait for seconds. */
const MAX_WAITING = 64;
const IDLE_MS = 60_000;

interface Waiting {
  resolve(result: boolean | string): void;
  reject(error: Error): void;
}

/** Runs hashes in a worker thread, which ends after a minute without work. */
export class PasswordThread implements PasswordPort {
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #next = 0;
  readonly #waiting = new Map<number, Waiting>();

  async verify(password: string, hash: string): Promise<boolean> {
    return (await this.#order({ password, hash })) === true;
  }

  /** Hashes a password with bcrypt. */
  async hash(password: string): Promise<string> {
    return String(await this.#order({ password }));
  }

  async stop(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #order(order: { readonly password: string; readonly hash?: string }): Promise<boolean | string> {
    if (this.#waiting.size >= MAX_WAITING)
      return Promise.reject(new CodedError('busy', 'too many passwords wait to be checked'));
    const worker = this.#worker ?? this.#start();
    clearTimeout(this.#idle);
    const id = ++this.#next;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...order });
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./password-worker.ts', import.meta.url), { name: 'passwords', env: {} });
    worker.unref();
    worker.on('message', ({ id, result }: { id: number; result: boolean | string }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#rest();
      waiting?.resolve(result);
    });
    const failed = (error: Error): void => {
      if (this.#worker === worker) this.#worker = undefined;
      const all = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const each of all) each.reject(error);
    };
    worker.on('error', failed);
    worker.on('exit', () => failed(new Error('the thread for passwords ended')));
    this.#worker = worker;
    return worker;
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.stop(), IDLE_MS);
    this.#idle.unref();
  }
}

/** Hashes a password with bcrypt, in a thread that is stopped afterwards. Meant for short-lived processes. */
export async function hashPassword(password: string): Promise<string> {
  const thread = new PasswordThread();
  try {
    return await thread.hash(password);
  } finally {
    await thread.stop();
  }
}
