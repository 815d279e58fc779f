/**
 * Serves `/openapi/v2` and `/openapi/v3`. The documents are large, so they are built on demand, one at a time, with
 * pauses.
 */

import { setImmediate as pause } from 'node:timers/promises';
import { ApiError } from '../../api/meta/status.ts';
import { withUniqueDefinitions } from '../../api/openapi/foreign-v2.ts';
import { asV3 } from '../../api/openapi/foreign-v3.ts';
import { customV2, joinV2, type OpenApiV2, openapiV2, type V2Parts, v2Parts } from '../../api/openapi/v2.ts';
import { encodeOpenapiV2, OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_REQUESTS } from '../../api/openapi/v2-protobuf.ts';
import { openapiV3, openapiV3Index, openapiV3Paths } from '../../api/openapi/v3.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { openshiftDescriptions } from '../../api/schema/openshift/index.ts';
import type { Descriptions } from '../../api/schema/types-format.ts';
import { decodeJson, fields, map, own } from '../../base/decode.ts';
import { ignore } from '../../base/errors.ts';
import { type ForeignDiscovery, openapiPathOf } from '../aggregation/discovery.ts';
import { ForeignOpenApi, type ForeignPart } from '../aggregation/openapi-v2.ts';
import { proxyRequest } from '../aggregation/proxy.ts';
import type { Delegated } from '../aggregation/services.ts';
import type { Exchange } from '../http/exchange.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { type StaticDocument, sendDocument, staticDocument } from './documents.ts';

type OpenapiContext = BackendContext & Pick<ServerContext, 'apiServices' | 'config' | 'kinds' | 'log'>;

const V3 = '/openapi/v3';

export class OpenApi {
  readonly #context: OpenapiContext;
  readonly #foreign: ForeignDiscovery;
  readonly #foreignV2: ForeignOpenApi;
  readonly #loadDescriptions: (() => Promise<unknown>) | undefined;
  readonly #builtinKinds: readonly KindDefinition[];
  readonly #builtinPaths: readonly string[];
  readonly #made = new Map<string, Made>();
  readonly #jsonPieces = new WeakMap<KindDefinition, V2Parts>();
  readonly #protobufPieces = new WeakMap<KindDefinition, Uint8Array>();
  #descriptions: Promise<Descriptions> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    context: OpenapiContext,
    foreign: ForeignDiscovery,
    loadDescriptions: (() => Promise<unknown>) | undefined,
  ) {
    this.#context = context;
    this.#foreign = foreign;
    this.#foreignV2 = new ForeignOpenApi(context);
    this.#loadDescriptions = loadDescriptions;
    this.#builtinKinds = context.kinds.builtin;
    this.#builtinPaths = openapiV3Paths(this.#builtinKinds);
  }

  paths(): string[] {
    return ['/openapi/v2', V3, ...this.#documentPaths().map((path) => `${V3}/${path}`)];
  }

  /** Answers a request for an OpenAPI document. Undefined if there is no such document. */
  answer(exchange: Exchange, path: string): Promise<void> | undefined {
    if (path === '/openapi/v2') {
      return this.#v2(exchange.header('accept') ?? '').then((document) => sendDocument(exchange, document));
    }
    if (path === V3) return this.#v3Index().then((document) => sendDocument(exchange, document));
    const tail = path.startsWith(`${V3}/`) ? path.slice(V3.length + 1) : '';
    const delegate = tail === '' ? undefined : this.#delegateAt(tail);
    if (delegate !== undefined) {
      if (this.#foreign.openapiHashOf(delegate.name) !== undefined)
        return proxyRequest(this.#context, exchange, delegate);
      return this.#convertedV3(delegate).then((document) =>
        document === undefined ? proxyRequest(this.#context, exchange, delegate) : sendDocument(exchange, document),
      );
    }
    if (!this.#documentPaths().includes(tail)) return undefined;
    return this.#v3(tail).then((document) => {
      const requested = exchange.info.query.get('hash');
      sendDocument(exchange, document, requested === document.hash);
    });
  }

  #describe(): Promise<Descriptions> {
    this.#descriptions ??= (this.#loadDescriptions?.() ?? Promise.resolve({})).then((generated) => ({
      ...(generated as Descriptions),
      ...openshiftDescriptions,
    }));
    return this.#descriptions;
  }

  /**
   * Returns the cached document as long as `of` is unchanged. Builds one document at a time, with a pause before each.
   */
  #once<T>(key: string, of: readonly object[], make: (descriptions: Descriptions) => T): Promise<T> {
    const known = this.#made.get(key);
    if (known !== undefined && areSame(known.of, of)) return known.document as Promise<T>;
    const before = this.#last;
    const document = (async () => {
      await before.catch(ignore('the request for the former document gets its error'));
      const texts = await this.#describe();
      await pause();
      return make(texts);
    })();
    const entry = { of, document };
    document.catch(() => {
      if (this.#made.get(key) === entry) this.#made.delete(key);
      this.#descriptions = undefined;
    });
    this.#last = document;
    this.#made.set(key, entry);
    return document;
  }

  #delegateAt(path: string): Delegated | undefined {
    return this.#context.apiServices.delegated.find((each) => openapiPathOf(each) === path);
  }

  #documentPaths(): string[] {
    const { custom } = this.#context.kinds;
    const isCustom = (path: string): boolean => custom.some((each) => isOf(each, path));
    return [...new Set([...this.#builtinPaths, ...openapiV3Paths(custom).filter(isCustom)])];
  }

  #v3(path: string): Promise<StaticDocument> {
    const custom = this.#context.kinds.custom.filter((each) => isOf(each, path));
    // A document with built-in kinds needs all built-in kinds, because they share types. Custom kinds share no types.
    const of = this.#builtinPaths.includes(path) ? [...this.#builtinKinds, ...custom] : custom;
    return this.#once(`v3 ${path}`, of, (texts) => json(openapiV3(of, path, texts)));
  }

  /** OpenAPI v3 document of a server that provides only OpenAPI v2. */
  async #convertedV3(to: Delegated): Promise<StaticDocument | undefined> {
    const part = await this.#foreignV2.partOf(to);
    return part === undefined
      ? undefined
      : this.#once(`v3 ${to.name}`, [part], () => json(asV3(part, `${to.group}/${to.version}`)));
  }

  async #v3Index(): Promise<StaticDocument> {
    const hashes = new Map<string, string>();
    for (const path of this.#documentPaths()) hashes.set(path, (await this.#v3(path)).hash);
    for (const each of this.#context.apiServices.delegated) {
      const hash = this.#foreign.openapiHashOf(each.name) ?? (await this.#convertedV3(each))?.hash;
      if (hash === undefined) hashes.delete(openapiPathOf(each));
      else hashes.set(openapiPathOf(each), hash);
    }
    return json(openapiV3Index([...hashes.keys()], (path) => hashes.get(path) ?? ''));
  }

  #parts(): Promise<V2Parts> {
    return this.#once('v2 parts', ALWAYS, (texts) => v2Parts(openapiV2(this.#builtinKinds, texts)));
  }

  /** Parts of aggregated servers, without the definitions that this server or earlier parts already have. */
  async #aggregatedParts(
    builtin: V2Parts,
    custom: readonly KindDefinition[],
    foreignParts: readonly ForeignPart[],
  ): Promise<readonly OpenApiV2[]> {
    if (foreignParts.length === 0) return [];
    const ours = await pieces(custom, this.#jsonPieces, (kind) => v2Parts(customV2(kind, builtin)));
    return this.#once('v2 of others', [...custom, ...foreignParts], () => addedByOthers(builtin, ours, foreignParts));
  }

  async #v2(accept: string): Promise<StaticDocument> {
    const protobuf = OPENAPI_V2_PROTOBUF_REQUESTS.some((type) => accept.includes(type));
    if (!protobuf && accept !== '' && !/application\/(?:json|\*)|\*\/\*/.test(accept)) {
      throw new ApiError('NotAcceptable', 'only the following media types are accepted: application/json');
    }
    const builtin = await this.#parts();
    const { custom } = this.#context.kinds;
    const others = await this.#aggregatedParts(builtin, custom, await this.#foreignV2.parts());
    if (protobuf) return this.#v2Protobuf(builtin, custom, others);
    const added = await pieces(custom, this.#jsonPieces, (kind) => v2Parts(customV2(kind, builtin)));
    return this.#once('v2', [...custom, ...others], () =>
      staticDocument(Buffer.from(joinV2(builtin, [...added, ...others.map(v2Parts)]))),
    );
  }

  async #v2Protobuf(
    builtin: V2Parts,
    custom: readonly KindDefinition[],
    others: readonly OpenApiV2[],
  ): Promise<StaticDocument> {
    const encoded = await this.#once('v2 protobuf builtin', ALWAYS, (texts) =>
      encodeOpenapiV2(openapiV2(this.#builtinKinds, texts)),
    );
    const added = await pieces(custom, this.#protobufPieces, (kind) =>
      encodeOpenapiV2(customV2(kind, builtin), 1 << 16),
    );
    // Concatenated protobuf messages decode as one message.
    return this.#once('v2 protobuf', [...custom, ...others], () => {
      const theirs = others.map((each) => encodeOpenapiV2(each, 1 << 16));
      return staticDocument(Buffer.concat([encoded, ...added, ...theirs]), OPENAPI_V2_PROTOBUF);
    });
  }
}

const ALWAYS: readonly KindDefinition[] = [];

const json = (value: unknown): StaticDocument => staticDocument(Buffer.from(JSON.stringify(value)));

const isOf = ({ group, version }: KindDefinition, path: string): boolean => `apis/${group}/${version}` === path;

/** Builds the part of each kind that `known` does not have yet, and lets other work run after each. */
async function pieces<T>(
  custom: readonly KindDefinition[],
  known: WeakMap<KindDefinition, T>,
  make: (kind: KindDefinition) => T,
): Promise<T[]> {
  const found: T[] = [];
  for (const kind of custom) {
    let piece = known.get(kind);
    if (piece === undefined) {
      piece = make(kind);
      known.set(kind, piece);
      await pause();
    }
    found.push(piece);
  }
  return found;
}

const HEAD = own<Pick<OpenApiV2, 'swagger' | 'info'>>(fields);

function addedByOthers(
  builtin: V2Parts,
  custom: readonly V2Parts[],
  foreign: readonly ForeignPart[],
): readonly OpenApiV2[] {
  const { swagger, info } = decodeJson(HEAD, `${builtin.head.slice(0, -1)}}`, 'OpenAPI document');
  const known: { [name: string]: object } = {
    ...decodeJson(map(fields), `{${builtin.definitions}}`, 'OpenAPI definitions'),
  };
  const used = new Set([builtin, ...custom].flatMap(({ names }) => [...names]));
  for (const name of used) if (!Object.hasOwn(known, name)) known[name] = {};
  return foreign.map((part) => {
    const added = withUniqueDefinitions(part, known as OpenApiV2['definitions']);
    Object.assign(known, added.definitions);
    const paths = Object.entries(added.paths).filter(([path]) => !used.has(path));
    for (const [path] of paths) used.add(path);
    return { swagger, info, paths: Object.fromEntries(paths), definitions: added.definitions };
  });
}

interface Made {
  readonly of: readonly object[];
  readonly document: Promise<unknown>;
}

function areSame(a: readonly object[], b: readonly object[]): boolean {
  return a.length === b.length && a.every((each, index) => each === b[index]);
}
