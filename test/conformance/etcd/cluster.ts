import assert from 'node:assert/strict';
import { EtcdClient, StatusError } from './client.ts';
import type { Message } from './messages.ts';

/** A cluster for the suite: endpoints without TLS, and a way to stop it. */
export interface Cluster {
  /** `http://host:port` of each member; the tests use them in turn. */
  readonly endpoints: readonly string[];
  stop(): Promise<void>;
}

export interface EtcdSuite {
  readonly name: string;
  start(): Promise<Cluster>;
}

let suffix = 0;

/** A running cluster with clients for its members. */
export class Subject {
  readonly #cluster: Cluster;
  readonly #clients: EtcdClient[];
  #turn = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#clients = cluster.endpoints.map((endpoint) => new EtcdClient(endpoint));
  }

  get memberCount(): number {
    return this.#clients.length;
  }

  /** Client for the next member, round-robin. */
  get client(): EtcdClient {
    this.#turn = (this.#turn + 1) % this.#clients.length;
    return this.#clients[this.#turn] as EtcdClient;
  }

  get endpoint(): string {
    return this.#cluster.endpoints[this.#turn] as string;
  }

  /** A prefix that no other test uses. */
  fresh(): string {
    suffix += 1;
    return `/c/${process.pid}-${suffix}/`;
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.#cluster.stop();
  }
}

/** End of the range of all keys with the prefix. */
export function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** Asserts that the call fails with this gRPC status. */
export async function refused(call: Promise<unknown>, code: number, message: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof StatusError, String(error));
    assert.deepEqual([error.code, error.message], [code, message]);
    return true;
  });
}

export const keysOf = (kvs: ReadonlyArray<Message<'KeyValue'>>): string[] => kvs.map((kv) => kv.key);

export const revisionOf = (answer: { header: Message<'Header'> | undefined }): number => answer.header?.revision ?? -1;

export const COMPACTED = 'etcdserver: mvcc: required revision has been compacted';
export const FUTURE = 'etcdserver: mvcc: required revision is a future revision';
