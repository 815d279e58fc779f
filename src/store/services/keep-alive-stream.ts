import type { Log } from '../../base/log.ts';
import type { StreamCall, StreamHandler } from '../../wire/grpc/port.ts';
import { failureOf } from './rpc-errors.ts';

/**
 * One stream of `LeaseKeepAlive`: one response for each request, in order. As in etcd, the next request is read only
 * after the client has received most of the responses, so that a fast client cannot fill the memory.
 */
export class KeepAliveStream implements StreamHandler {
  readonly #call: StreamCall;
  readonly #renew: (message: Uint8Array) => Promise<Uint8Array>;
  readonly #log: Log;
  #requests: Uint8Array[] = [];
  #working = false;
  #ended = false;
  #open = true;
  #drained: () => void = () => {};

  /** `renew`: returns the response to one request. */
  constructor(call: StreamCall, renew: (message: Uint8Array) => Promise<Uint8Array>, log: Log) {
    this.#call = call;
    this.#renew = renew;
    this.#log = log;
  }

  message(message: Uint8Array): void {
    if (!this.#open) return;
    this.#requests.push(message);
    if (this.#working) return;
    this.#call.pause();
    void this.#work();
  }

  ended(): void {
    this.#ended = true;
    if (this.#open && !this.#working) this.#call.end();
  }

  closed(): void {
    this.#open = false;
    this.#drained();
  }

  drained(): void {
    this.#drained();
  }

  /** Responds to all waiting requests. */
  async #work(): Promise<void> {
    this.#working = true;
    try {
      for (let next = this.#requests.shift(); next !== undefined && this.#open; next = this.#requests.shift()) {
        const response = await this.#renew(next);
        if (this.#open && !this.#call.send(response)) await this.#untilDrained();
      }
    } catch (error) {
      const { code, message } = failureOf(error, this.#log);
      if (this.#open) this.#call.end(code, message);
      this.#open = false;
    }
    this.#working = false;
    if (!this.#open) this.#requests = [];
    else if (this.#ended) this.#call.end();
    else this.#call.resume();
  }

  #untilDrained(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained = resolve;
    });
  }
}
