import type { Socket } from '../../../src/console/data/pods/exec.ts';

/** A WebSocket whose other side is the test. */
export class FakeSocket implements Socket {
  binaryType = '';
  readyState = 0;
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];
  readonly #listeners: { readonly type: string; readonly listener: (event: { readonly data: unknown }) => void }[] = [];

  send(data: Uint8Array<ArrayBuffer>): void {
    this.sent.push(data);
  }

  close(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.#emit('close', undefined);
  }

  addEventListener(type: string, listener: (event: { readonly data: unknown }) => void): void {
    this.#listeners.push({ type, listener });
  }

  open(): void {
    this.readyState = 1;
    this.#emit('open', undefined);
  }

  receive(channel: number, text: string): void {
    this.#emit('message', Uint8Array.of(channel, ...new TextEncoder().encode(text)).buffer);
  }

  #emit(type: string, data: unknown): void {
    for (const each of this.#listeners) if (each.type === type) each.listener({ data });
  }
}
