/** An HTTP/1.1 request whose body can be read without a stream. */
import { IncomingMessage } from 'node:http';
import type { BodyConsumer, HttpRequest } from '../../port.ts';

export class Http1Message extends IncomingMessage implements HttpRequest {
  #take: BodyConsumer | undefined;
  #begun = false;

  takeBody(take: BodyConsumer): boolean {
    if (this.#begun) return false;
    this.#take = take;
    return true;
  }

  /** Node's parser calls this for each piece of a body, and with null at the end. Returning false pauses the parser. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#take !== undefined) return this.#take(chunk);
    this.#begun = true;
    return super.push(chunk, encoding);
  }
}
