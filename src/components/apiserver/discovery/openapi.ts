/** `/openapi/v2` and `/openapi/v3`: large, so made on demand, one at a time, with a pause for others in between. */
import { setImmediate as pause } from 'node:timers/promises';
import { ApiError } from '../../../api/meta/status.ts';
import { openapiV2 } from '../../../api/openapi/v2.ts';
import {
  encodeOpenapiV2,
  OPENAPI_V2_PROTOBUF,
  OPENAPI_V2_PROTOBUF_REQUESTS,
} from '../../../api/openapi/v2-protobuf.ts';
import { openapiV3, openapiV3Index, openapiV3Paths } from '../../../api/openapi/v3.ts';
import { builtinKinds } from '../../../api/registry/index.ts';
import type { Descriptions } from '../../../api/schema/types-format.ts';
import type { Exchange } from '../http/exchange.ts';
import { type StaticDocument, sendDocument, staticDocument } from './documents.ts';

const V3 = '/openapi/v3';

export function createOpenApi(loadDescriptions: (() => Promise<unknown>) | undefined) {
  const made = new Map<string, Promise<StaticDocument>>();
  let descriptions: Promise<Descriptions> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const describe = (): Promise<Descriptions> => {
    descriptions ??= (loadDescriptions?.() ?? Promise.resolve({})) as Promise<Descriptions>;
    return descriptions;
  };
  const once = (key: string, make: (descriptions: Descriptions) => StaticDocument): Promise<StaticDocument> => {
    let document = made.get(key);
    if (document === undefined) {
      const before = last;
      document = (async () => {
        await before.catch(() => {});
        const texts = await describe();
        await pause();
        return make(texts);
      })();
      document.catch(() => {
        made.delete(key);
        descriptions = undefined;
      });
      last = document;
      made.set(key, document);
    }
    return document;
  };
  const json = (value: unknown): StaticDocument => staticDocument(Buffer.from(JSON.stringify(value)));
  const v3 = (path: string): Promise<StaticDocument> =>
    once(`v3 ${path}`, (texts) => json(openapiV3(builtinKinds, path, texts)));
  const v3Index = async (): Promise<StaticDocument> => {
    const hashes = new Map<string, string>();
    for (const path of openapiV3Paths(builtinKinds)) hashes.set(path, (await v3(path)).hash);
    return once('v3', () => json(openapiV3Index(builtinKinds, (path) => hashes.get(path) ?? '')));
  };
  const v2 = (accept: string): Promise<StaticDocument> => {
    if (OPENAPI_V2_PROTOBUF_REQUESTS.some((type) => accept.includes(type))) {
      return once('v2 protobuf', (texts) =>
        staticDocument(Buffer.from(encodeOpenapiV2(openapiV2(builtinKinds, texts))), OPENAPI_V2_PROTOBUF),
      );
    }
    if (accept !== '' && !/application\/json|\*\/\*|application\/\*/.test(accept)) {
      throw new ApiError('NotAcceptable', 'only the following media types are accepted: application/json');
    }
    return once('v2', (texts) => json(openapiV2(builtinKinds, texts)));
  };
  return {
    paths: (): string[] => ['/openapi/v2', V3, ...openapiV3Paths(builtinKinds).map((path) => `${V3}/${path}`)],
    answer(exchange: Exchange, path: string): Promise<void> | undefined {
      if (path === '/openapi/v2') {
        return v2(exchange.header('accept') ?? '').then((document) => sendDocument(exchange, document));
      }
      if (path === V3) return v3Index().then((document) => sendDocument(exchange, document));
      const tail = path.startsWith(`${V3}/`) ? path.slice(V3.length + 1) : '';
      if (!openapiV3Paths(builtinKinds).includes(tail)) return undefined;
      return v3(tail).then((document) => {
        const asked = exchange.info.query.get('hash');
        sendDocument(exchange, document, asked === document.hash);
      });
    },
  };
}
