/**
 * Client for both stores: a thin layer over the project's gRPC client. Each request is encoded once, and responses are
 * only checked.
 */

import { silentLog } from '../../../src/base/log.ts';
import {
  decodeRangeResponse,
  writeModRevisionCompare,
  writePutRequest,
  writeRangeRequest,
} from '../../../src/store/core/messages/kv.ts';
import { decodeWatchResponse, writeWatchCreate } from '../../../src/store/core/messages/watch.ts';
import { prefixEnd } from '../../../src/store/port.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { type Certificates, clock } from '../../store/harness.ts';

const TIMEOUT_MS = 60_000;
const writer = new Writer(16 << 10);

export class Client {
  readonly #channels: readonly Channel[];
  #next = 0;

  /** Opens one connection per endpoint. */
  constructor(endpoints: readonly string[], { ca, client }: Certificates) {
    this.#channels = endpoints.map(
      (endpoint) => new Channel({ endpoints: [endpoint], ca, ...client, log: silentLog, clock }),
    );
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    await this.#call('/etcdserverpb.KV/Put', writePutRequest(writer.reset(), { key, value }).finishBriefly());
  }

  /** Puts a key if it does not exist, as the API server's create does. */
  async create(key: string, value: Uint8Array): Promise<void> {
    writeModRevisionCompare(writer.reset(), key, 0);
    const op = writer.begin(2);
    const mark = writer.begin(2);
    writePutRequest(writer, { key, value }).end(mark).end(op);
    await this.#call('/etcdserverpb.KV/Txn', writer.finishBriefly());
  }

  async get(key: string, serializable: boolean): Promise<void> {
    await this.#call(
      '/etcdserverpb.KV/Range',
      writeRangeRequest(writer.reset(), { key, serializable }).finishBriefly(),
    );
  }

  /** Resolves with the number of keys. */
  async list(prefix: string, limit = 0): Promise<number> {
    const request = writeRangeRequest(writer.reset(), { key: prefix, end: prefixEnd(prefix), limit });
    return decodeRangeResponse(await this.#call('/etcdserverpb.KV/Range', request.finishBriefly())).kvs.length;
  }

  /** Resolves with the store's revision. */
  async revision(): Promise<number> {
    const request = writeRangeRequest(writer.reset(), { key: 'none' }).finishBriefly();
    return decodeRangeResponse(await this.#call('/etcdserverpb.KV/Range', request)).revision;
  }

  async compact(revision: number): Promise<void> {
    await this.#call('/etcdserverpb.KV/Compact', writer.reset().int(1, revision).finishBriefly());
  }

  /**
   * Opens `count` watches of a prefix on one stream. `event` is called for each event of each watch. Resolves when all
   * are created.
   */
  async watch(prefix: string, count: number, event: (events: number) => void): Promise<void> {
    await new Promise<void>((resolve) => {
      let created = 0;
      const stream = (this.#channels[0] as Channel).stream('/etcdserverpb.Watch/Watch', {
        message: (message) => {
          const response = decodeWatchResponse(message);
          if (response.created) {
            created += 1;
            if (created === count) resolve();
          }
          if (response.events.length > 0) event(response.events.length);
        },
        ended: () => {},
      });
      for (let i = 0; i < count; i += 1) {
        stream.send(writeWatchCreate(writer.reset(), { key: prefix, end: prefixEnd(prefix), watchId: i + 1 }).finish());
      }
    });
  }

  #call(path: string, request: Buffer): Promise<Buffer> {
    this.#next = (this.#next + 1) % this.#channels.length;
    return (this.#channels[this.#next] as Channel).unary(path, request, TIMEOUT_MS);
  }
}
