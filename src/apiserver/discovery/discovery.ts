/** Serves `/api`, `/apis` and below, plain and aggregated, and OpenAPI. */
import { createHash } from 'node:crypto';
import { aggregatedContentType, discoveryDocuments } from '../../api/discovery/index.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { type ForeignDiscovery, openapiPathOf } from '../aggregation/discovery.ts';
import type { Exchange } from '../http/exchange.ts';
import { negotiate } from '../http/negotiate.ts';
import type { BackendContext, ServerContext } from '../rest/context.ts';
import { noSuchResource } from '../rest/reads/served-at.ts';
import { cachedDocuments, type StaticDocument, sendDocument, staticDocument } from './documents.ts';
import { OpenApi } from './openapi.ts';

type DiscoveryContext = BackendContext & Pick<ServerContext, 'apiServices' | 'config' | 'kinds' | 'log'>;

const HASH_BYTES = 8;

export interface Discovery {
  paths(): string[];
  answer(exchange: Exchange, path: string): Promise<void> | undefined;
}

export function createDiscovery(
  context: DiscoveryContext,
  foreign: ForeignDiscovery,
  loadDescriptions: (() => Promise<unknown>) | undefined,
): Discovery {
  const { kinds, apiServices } = context;
  const openapi = new OpenApi(context, foreign, loadDescriptions);
  let made: ReturnType<typeof discoveryDocuments> | undefined;
  let generation = '';
  const documents = (): ReturnType<typeof discoveryDocuments> => {
    const now = `${kinds.generation} ${apiServices.generation} ${foreign.generation}`;
    if (made === undefined || generation !== now) {
      generation = now;
      made = discoveryDocuments(kinds.definitions, {
        registered: new Map(apiServices.all.map((each) => [`${each.group}/${each.version}`, each.priority])),
        foreign: foreign.versions(),
        storageHash,
      });
      plain = cachedDocuments(plainDocument);
      aggregated = cachedDocuments(aggregatedDocument);
    }
    return made;
  };
  const json = (value: unknown, contentType?: string): StaticDocument =>
    staticDocument(Buffer.from(`${JSON.stringify(value)}\n`), contentType);
  const plainDocument = (path: string): StaticDocument => {
    const found = valueAt(path);
    if (found === undefined) throw noSuchResource();
    return json(found);
  };
  const aggregatedDocument = (key: string): StaticDocument => {
    const [root, version] = key.split(' ');
    const form = version === 'v2' ? 'v2' : 'v2beta1';
    return json(documents().aggregated(root === 'api' ? 'api' : 'apis', form), aggregatedContentType(form));
  };
  let plain = cachedDocuments(plainDocument);
  let aggregated = cachedDocuments(aggregatedDocument);
  const valueAt = (path: string): unknown => {
    const { apiVersions, apiGroups, groups, resources } = documents();
    if (path === '/api') {
      const serverAddress = `${context.config.advertiseAddress}:${context.config.advertisePort ?? context.config.port}`;
      return { ...apiVersions, serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }] };
    }
    if (path === '/apis') return apiGroups;
    if (path.startsWith('/api/')) return resources.get(path.slice('/api/'.length));
    if (!path.startsWith('/apis/')) return undefined;
    const tail = path.slice('/apis/'.length);
    return tail.includes('/') ? resources.get(tail) : groups.get(tail);
  };
  return {
    paths() {
      const { groups, resources } = documents();
      const versions = [
        ...[...resources.keys()].map((each) => (each.includes('/') ? `/apis/${each}` : `/api/${each}`)),
        ...foreign.versions().map((each) => `/${openapiPathOf(each)}`),
      ];
      return ['/api', '/apis', ...[...groups.keys()].map((group) => `/apis/${group}`), ...versions, ...openapi.paths()];
    },
    answer(exchange, path) {
      const opened = openapi.answer(exchange, path);
      if (opened !== undefined) return opened;
      // `valueAt` also rebuilds the documents after kinds were added or removed.
      if (valueAt(path) === undefined) throw noSuchResource();
      const form = negotiate(exchange.request.headers.accept, { protobuf: true });
      if (form.as === 'APIGroupDiscoveryList' && (path === '/api' || path === '/apis')) {
        sendDocument(exchange, aggregated(`${path.slice(1)} ${form.version}`));
      } else if (form.as === 'object' && (form.format !== 'json' || exchange.indents !== undefined)) {
        exchange.sendObject(200, valueAt(path) as KubeObject);
      } else {
        sendDocument(exchange, plain(path));
      }
      return undefined;
    },
  };
}

/** Storage version hash of a kind. Source: k8s.io/apiserver/pkg/endpoints/discovery/storageversionhash.go. */
function storageHash(stored: string): string {
  return createHash('sha256').update(stored).digest().subarray(0, HASH_BYTES).toString('base64');
}
