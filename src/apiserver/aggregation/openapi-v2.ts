/**
 * OpenAPI v2 of aggregated API servers. The documents are large and few clients request them, so they are fetched on
 * demand, cached, and refreshed in the background once they are a minute old.
 */

import { partOfV2 } from '../../api/openapi/foreign-v2.ts';
import { messageOf } from '../../base/errors.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { decodeJson } from '../http/decode.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { endpointOf, queryBackend } from './backend.ts';
import type { Delegated } from './services.ts';

type OpenapiV2Context = BackendContext & Pick<ServerContext, 'apiServices' | 'log'>;

const FRESH_MS = 60_000;
const TIMEOUT_MS = 5_000;
/** The size is limited because parsing blocks the event loop. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * OpenAPI document of one server. The cache returns the same object as long as the server's document does not change.
 */
export type ForeignPart = ReturnType<typeof partOfV2>;

interface Entry {
  specText: string;
  requestedMs: number;
  etag: string | undefined;
  digest: string;
  part: ForeignPart | undefined;
  pending: Promise<void> | undefined;
  /** True after the first fetch, even if it failed. Requests wait only for the first fetch. */
  wasRequested: boolean;
}

export class ForeignOpenApi {
  readonly #context: OpenapiV2Context;
  readonly #entries = new Map<string, Entry>();

  constructor(context: OpenapiV2Context) {
    this.#context = context;
  }

  /**
   * Documents of all available servers in the order of discovery. Waits only for documents that have not been fetched
   * yet.
   */
  async parts(): Promise<readonly ForeignPart[]> {
    const { apiServices } = this.#context;
    for (const name of this.#entries.keys())
      if (apiServices.get(name)?.service === undefined) this.#entries.delete(name);
    const all = [...apiServices.delegated].sort(
      (a, b) => b.priority.group - a.priority.group || (a.name < b.name ? -1 : 1),
    );
    const entries = await Promise.all(all.map((each) => this.#entryOf(each)));
    return entries.flatMap(({ part }) => (part === undefined ? [] : [part]));
  }

  /** Document of one server; undefined if it does not provide one. */
  async partOf(to: Delegated): Promise<ForeignPart | undefined> {
    return (await this.#entryOf(to)).part;
  }

  async #entryOf(to: Delegated): Promise<Entry> {
    let entry = this.#entries.get(to.name);
    if (entry === undefined || entry.specText !== to.specText) {
      const { specText } = to;
      entry = {
        specText,
        requestedMs: -FRESH_MS,
        etag: undefined,
        digest: '',
        part: undefined,
        pending: undefined,
        wasRequested: false,
      };
      this.#entries.set(to.name, entry);
    }
    const { clock } = this.#context;
    if (to.available && entry.pending === undefined && clock.monotonicMs() - entry.requestedMs >= FRESH_MS) {
      const requested = entry;
      requested.requestedMs = clock.monotonicMs();
      requested.pending = this.#fetch(to, requested)
        .catch((error: unknown) => {
          this.#context.log.v(2, 'cannot fetch OpenAPI of an APIService', { name: to.name, error: messageOf(error) });
        })
        .finally(() => {
          requested.pending = undefined;
          requested.wasRequested = true;
        });
    }
    if (!entry.wasRequested) await entry.pending;
    return entry;
  }

  async #fetch(to: Delegated, entry: Entry): Promise<void> {
    const { code, headers, body } = await queryBackend(this.#context, {
      at: endpointOf(this.#context, to),
      path: '/openapi/v2',
      accept: 'application/json',
      tls: to.tls,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      ...(entry.etag === undefined ? {} : { etag: entry.etag }),
    });
    if (code === 304) return;
    if (code !== 200) throw new Error(`/openapi/v2 returned status ${code}`);
    entry.etag = headers.etag;
    const digest = sha256Hex(body);
    if (digest === entry.digest) return;
    entry.part = partOfV2(decodeJson(body), to);
    entry.digest = digest;
  }
}
