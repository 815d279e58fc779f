/** `/openapi/v2` and `/openapi/v3`: large, so made on demand, one at a time, with a pause for others in between. */
import { setImmediate as pause } from 'node:timers/promises';
import { ApiError } from '../../../api/meta/status.ts';
import { besideKnown } from '../../../api/openapi/foreign-v2.ts';
import { asV3 } from '../../../api/openapi/foreign-v3.ts';
import { customV2, joinV2, type OpenApiV2, openapiV2, type V2Parts, v2Parts } from '../../../api/openapi/v2.ts';
import {
  encodeOpenapiV2,
  OPENAPI_V2_PROTOBUF,
  OPENAPI_V2_PROTOBUF_REQUESTS,
} from '../../../api/openapi/v2-protobuf.ts';
import { openapiV3, openapiV3Index, openapiV3Paths } from '../../../api/openapi/v3.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import type { Descriptions } from '../../../api/schema/types-format.ts';
import { type ForeignDiscovery, openapiPathOf } from '../aggregation/discovery.ts';
import { ForeignOpenApi, type ForeignPart } from '../aggregation/openapi-v2.ts';
import { passOn } from '../aggregation/proxy.ts';
import type { Delegated } from '../aggregation/services.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RestContext } from '../rest/context.ts';
import { type StaticDocument, sendDocument, staticDocument } from './documents.ts';

const V3 = '/openapi/v3';

export function createOpenApi(
  context: RestContext,
  foreign: ForeignDiscovery,
  loadDescriptions: (() => Promise<unknown>) | undefined,
) {
  const { kinds, apiServices } = context;
  const builtinKinds = kinds.builtin;
  const builtinPaths = openapiV3Paths(builtinKinds);
  const foreignV2 = new ForeignOpenApi(context);
  const made = new Map<string, Made>();
  const always: readonly KindDefinition[] = [];
  let descriptions: Promise<Descriptions> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const describe = (): Promise<Descriptions> => {
    descriptions ??= (loadDescriptions?.() ?? Promise.resolve({})) as Promise<Descriptions>;
    return descriptions;
  };
  /** Kept while it would be made of the same. */
  const once = <T>(key: string, of: readonly object[], make: (descriptions: Descriptions) => T): Promise<T> => {
    const known = made.get(key);
    if (known !== undefined && areSame(known.of, of)) return known.document as Promise<T>;
    const before = last;
    const document = (async () => {
      await before.catch(() => {});
      const texts = await describe();
      await pause();
      return make(texts);
    })();
    const entry = { of, document };
    document.catch(() => {
      if (made.get(key) === entry) made.delete(key);
      descriptions = undefined;
    });
    last = document;
    made.set(key, entry);
    return document;
  };
  const json = (value: unknown): StaticDocument => staticDocument(Buffer.from(JSON.stringify(value)));
  /** The aggregated API server of a document's group and version. */
  const delegateAt = (path: string): Delegated | undefined =>
    apiServices.delegated.find((each) => openapiPathOf(each) === path);
  const paths = (): string[] => [...new Set([...builtinPaths, ...openapiV3Paths(kinds.custom).filter(isCustom)])];
  const isCustom = (path: string): boolean =>
    kinds.custom.some((each) => `apis/${each.group}/${each.version}` === path);
  const v3 = (path: string): Promise<StaticDocument> => {
    const custom = kinds.custom.filter((each) => `apis/${each.group}/${each.version}` === path);
    // Built-in kinds are all passed, for their shared types; custom ones only with their own group and version.
    const of = builtinPaths.includes(path) ? [...builtinKinds, ...custom] : custom;
    return once(`v3 ${path}`, of, (texts) => json(openapiV3(of, path, texts)));
  };
  /** Of a server that has only the older version. */
  const convertedV3 = async (to: Delegated): Promise<StaticDocument | undefined> => {
    const part = await foreignV2.partOf(to);
    return part === undefined
      ? undefined
      : once(`v3 ${to.name}`, [part], () => json(asV3(part, `${to.group}/${to.version}`)));
  };
  const v3Index = async (): Promise<StaticDocument> => {
    const hashes = new Map<string, string>();
    for (const path of paths()) hashes.set(path, (await v3(path)).hash);
    for (const each of apiServices.delegated) {
      const hash = foreign.openapiHashOf(each.name) ?? (await convertedV3(each))?.hash;
      if (hash === undefined) hashes.delete(openapiPathOf(each));
      else hashes.set(openapiPathOf(each), hash);
    }
    return json(openapiV3Index([...hashes.keys()], (path) => hashes.get(path) ?? ''));
  };
  const jsonPieces = new WeakMap<KindDefinition, V2Parts>();
  const protobufPieces = new WeakMap<KindDefinition, Uint8Array>();
  const parts = (): Promise<V2Parts> => once('v2 parts', always, (texts) => v2Parts(openapiV2(builtinKinds, texts)));
  /** Kinds come and go one by one: what one adds is made once, with a pause for others after each. */
  const pieces = async <T>(
    custom: readonly KindDefinition[],
    known: WeakMap<KindDefinition, T>,
    make: (kind: KindDefinition) => T,
  ): Promise<T[]> => {
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
  };
  /** What other servers add, each beside ours and those before it. */
  const besideOurs = async (
    builtin: V2Parts,
    custom: readonly KindDefinition[],
    foreignParts: readonly ForeignPart[],
  ): Promise<readonly OpenApiV2[]> => {
    if (foreignParts.length === 0) return [];
    const ours = await pieces(custom, jsonPieces, (kind) => v2Parts(customV2(kind, builtin)));
    return once('v2 of others', [...custom, ...foreignParts], () => addedByOthers(builtin, ours, foreignParts));
  };
  const v2 = async (accept: string): Promise<StaticDocument> => {
    const protobuf = OPENAPI_V2_PROTOBUF_REQUESTS.some((type) => accept.includes(type));
    if (!protobuf && accept !== '' && !/application\/(?:json|\*)|\*\/\*/.test(accept)) {
      throw new ApiError('NotAcceptable', 'only the following media types are accepted: application/json');
    }
    const builtin = await parts();
    const custom = kinds.custom;
    const others = await besideOurs(builtin, custom, await foreignV2.parts());
    if (protobuf) {
      const encoded = await once('v2 protobuf builtin', always, (texts) =>
        encodeOpenapiV2(openapiV2(builtinKinds, texts)),
      );
      const added = await pieces(custom, protobufPieces, (kind) => encodeOpenapiV2(customV2(kind, builtin), 1 << 16));
      // Messages written one after the other are read as one.
      return once('v2 protobuf', [...custom, ...others], () => {
        const theirs = others.map((each) => encodeOpenapiV2(each, 1 << 16));
        return staticDocument(Buffer.concat([encoded, ...added, ...theirs]), OPENAPI_V2_PROTOBUF);
      });
    }
    const added = await pieces(custom, jsonPieces, (kind) => v2Parts(customV2(kind, builtin)));
    return once('v2', [...custom, ...others], () =>
      staticDocument(Buffer.from(joinV2(builtin, [...added, ...others.map(v2Parts)]))),
    );
  };
  return {
    paths: (): string[] => ['/openapi/v2', V3, ...paths().map((path) => `${V3}/${path}`)],
    answer(exchange: Exchange, path: string): Promise<void> | undefined {
      if (path === '/openapi/v2') {
        return v2(exchange.header('accept') ?? '').then((document) => sendDocument(exchange, document));
      }
      if (path === V3) return v3Index().then((document) => sendDocument(exchange, document));
      const tail = path.startsWith(`${V3}/`) ? path.slice(V3.length + 1) : '';
      const delegate = tail === '' ? undefined : delegateAt(tail);
      if (delegate !== undefined) {
        if (foreign.openapiHashOf(delegate.name) !== undefined) return passOn(context, exchange, delegate);
        return convertedV3(delegate).then((document) =>
          document === undefined ? passOn(context, exchange, delegate) : sendDocument(exchange, document),
        );
      }
      if (!paths().includes(tail)) return undefined;
      return v3(tail).then((document) => {
        const asked = exchange.info.query.get('hash');
        sendDocument(exchange, document, asked === document.hash);
      });
    },
  };
}

function addedByOthers(
  builtin: V2Parts,
  custom: readonly V2Parts[],
  foreign: readonly ForeignPart[],
): readonly OpenApiV2[] {
  const { swagger, info } = JSON.parse(`${builtin.head.slice(0, -1)}}`) as Pick<OpenApiV2, 'swagger' | 'info'>;
  const known = JSON.parse(`{${builtin.definitions}}`) as { [name: string]: object };
  const taken = new Set([builtin, ...custom].flatMap(({ names }) => [...names]));
  for (const name of taken) if (!Object.hasOwn(known, name)) known[name] = {};
  return foreign.map((part) => {
    const added = besideKnown(part, known as OpenApiV2['definitions']);
    Object.assign(known, added.definitions);
    const paths = Object.entries(added.paths).filter(([path]) => !taken.has(path));
    for (const [path] of paths) taken.add(path);
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
