/** One input of a fuzz run, determined by the seed and its number. */
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import type { KindAlias, KindDefinition } from '../../../src/api/registry/definition.ts';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import { servedAs } from '../../../src/api/registry/versions.ts';
import { sample, sampleNameOf, storedKinds } from '../../api/kinds/samples.ts';
import { Choices } from '../../apiserver/core/patch/choices.ts';
import { type Body, jsonBody, largeText, patchBody, protobufBody, yamlBody } from './bodies.ts';
import { customResource, definition, GROUP, PLURALS } from './definitions.ts';
import { headersOf, query } from './parameters.ts';
import { damaged, TEXTS, value } from './values.ts';

export type Caller = 'admin' | 'user' | 'nobody';

export interface Input {
  readonly index: number;
  readonly method: string;
  /** Path with query. Latin-1: one character per byte. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer | undefined;
  readonly as: Caller;
  /** Whether the response may be slow or endless: watches, and requests to nodes. */
  readonly openEnded: boolean;
}

export const NAMESPACES = ['default', 'fuzz-a', 'fuzz-b'] as const;
const NAMES = ['x', 'y'] as const;
const ODD_NAMES = [
  '',
  '.',
  '..',
  '%2e%2e',
  '%2f',
  'a%2fb',
  '%00',
  'x%00',
  'X',
  'x y',
  '%20',
  '%',
  '%zz',
  '%c3%28',
  '%ed%a0%80',
  'x'.repeat(300),
  '__proto__',
  'constructor',
  'toString',
  '*',
  'x;y',
  'x:y',
  'http:x:1',
  '%5c',
  '%E2%80%AE',
  'x#y',
  '\x80\xff',
] as const;
const SUBRESOURCES = [
  'status',
  'scale',
  'finalize',
  'log',
  'exec',
  'attach',
  'portforward',
  'proxy',
  'binding',
  'eviction',
  'token',
  'approval',
  'ephemeralcontainers',
  'resize',
  'nothing',
  '__proto__',
  '',
] as const;
const STREAMS: ReadonlySet<string> = new Set(['log', 'exec', 'attach', 'portforward', 'proxy']);
const ROOTS = [
  '/',
  '/api',
  '/apis',
  '/api/v1',
  '/apis/apps',
  '/apis/apps/v1',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/api/v1',
  '/version',
  '/healthz',
  '/livez',
  '/readyz',
  '/readyz/etcd',
  '/metrics',
  '/openid/v1/jwks',
  '/.well-known/openid-configuration',
  '/debug/pprof',
  '/debug/pprof/profile',
  '/logs/',
  '/swagger.json',
  '/favicon.ico',
  '/apis/__proto__',
  '/apis/constructor/v1',
  '/api/v1/__proto__',
  '/openapi/v3/__proto__',
  '/api/v9/pods',
  '/apis/apps/v1/deployments/x/y/z',
  '/api/v1/watch/pods',
  '/api/v1/watch/namespaces/default/pods/x',
  '/api/v1/proxy/nodes/x',
  '*',
  'api/v1',
  'http://127.0.0.1/api/v1',
  '//api/v1',
  '/api//v1/pods',
  '/api/v1/../v1/pods',
  '/%61pi/v1/pods',
  '/api/v1/pods/',
  '/api/v1/pods//',
  '/apis/apps/v1/namespaces/default/deployments/x/',
] as const;
const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'QUERY',
  'LINK',
  'PROPFIND',
  'M-SEARCH',
] as const;

const stored = storedKinds.filter((kind) => kind.kind !== 'ComponentStatus');
const computed = builtinKinds.filter((kind) => kind.isComputed === true);

/** Makes admission objects match nothing, so that they do not reject the rest of the run. */
function harmless(document: Record<string, unknown>): void {
  const spec = document['spec'] as Record<string, unknown> | undefined;
  const only = {
    operations: ['CREATE'],
    apiGroups: ['none.example.com'],
    apiVersions: ['v1'],
    resources: ['nothings'],
  };
  for (const hook of (document['webhooks'] as { rules: unknown }[] | undefined) ?? []) hook.rules = [only];
  if (spec?.['matchConstraints'] !== undefined) spec['matchConstraints'] = { resourceRules: [only] };
}

interface Target {
  readonly kind: Pick<KindDefinition, 'kind' | 'namespaced' | 'isComputed' | 'schemaName'>;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  document(name: string): Record<string, unknown>;
}

function targetOf(choices: Choices): Target {
  if (choices.chance(0.12)) {
    const plural = choices.one(PLURALS);
    const kind = { kind: `K${plural}`, namespaced: true, schemaName: '' };
    return {
      kind,
      group: GROUP,
      version: choices.one(['v1', 'v1', 'v1beta1']),
      plural,
      document: (name) => customResource(choices, plural, name),
    };
  }
  if (choices.chance(0.04)) {
    const kind = builtinKinds.find((each) => each.kind === 'CustomResourceDefinition') as KindDefinition;
    return {
      kind,
      group: kind.group,
      version: 'v1',
      plural: kind.plural,
      document: () => definition(choices, choices.one(PLURALS)),
    };
  }
  if (choices.chance(0.05)) {
    const kind = choices.one(computed);
    const document = (name: string) => ({
      apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`,
      kind: kind.kind,
      metadata: { name },
      spec: JSON.parse(JSON.stringify(choices.object(3, true))),
    });
    return { kind, group: kind.group, version: kind.version, plural: kind.plural, document };
  }
  const kind = choices.one(stored);
  const alias = choices.chance(0.1) ? choices.one<{ group: string; version: string }>(kind.aliases ?? [kind]) : kind;
  const names = alias === kind ? kind : servedAs(kind, alias as KindAlias);
  const document = (name: string): Record<string, unknown> => {
    const made = sample(sampleNameOf(kind));
    harmless(made);
    const metadata = made.metadata as Record<string, unknown>;
    if (kind.kind !== 'CustomResourceDefinition') metadata['name'] = name;
    delete metadata['namespace'];
    made['kind'] = names.kind;
    made['apiVersion'] = alias.group === '' ? alias.version : `${alias.group}/${alias.version}`;
    return made;
  };
  return { kind, group: alias.group, version: alias.version, plural: names.plural, document };
}

function bodyOf(choices: Choices, target: Target, method: string, name: string): Body | undefined {
  if (choices.chance(0.003)) {
    const large = largeText(choices);
    const type = choices.one([
      'application/json',
      'application/json',
      'application/yaml',
      'application/merge-patch+json',
    ]);
    return { type, bytes: Buffer.from(large) };
  }
  if (method === 'GET' || method === 'HEAD')
    return choices.chance(0.02) ? { type: 'application/json', bytes: Buffer.from('{}') } : undefined;
  if (method === 'DELETE') {
    if (choices.chance(0.6)) return undefined;
    const options = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      gracePeriodSeconds: choices.one([0, 1, -1]),
      ...choices.one([{}, { propagationPolicy: 'Orphan' }, { preconditions: { uid: 'x' } }, { dryRun: ['All'] }]),
    };
    return jsonBody(choices, options);
  }
  const document = target.document(name);
  if (choices.chance(0.05)) (document['metadata'] as Record<string, unknown>)['generateName'] = 'x-';
  if (method === 'PATCH') return patchBody(choices, document);
  const roll = choices.below(12);
  if (roll === 0) return yamlBody(choices, document);
  if (roll <= 2)
    return protobufBody(choices, document as JsonObject, target.kind.schemaName) ?? jsonBody(choices, document);
  if (roll === 3)
    return {
      type: choices.one(['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf', 'x/y']),
      bytes: damaged(choices, value(choices), 0.5),
    };
  // Unchanged most of the time, because only stored objects can be read, listed, patched or deleted.
  if (roll <= 6) return { type: 'application/json', bytes: Buffer.from(JSON.stringify(document)) };
  return jsonBody(choices, document);
}

function pathOf(choices: Choices, target: Target, method: string): { path: string; name: string; subresource: string } {
  const root = target.group === '' ? `/api/${target.version}` : `/apis/${target.group}/${target.version}`;
  const odd = choices.chance(0.08);
  const within = choices.one(odd ? [...NAMESPACES, ...ODD_NAMES] : NAMESPACES);
  const scope = target.kind.namespaced !== choices.chance(0.03) ? `/namespaces/${within}` : '';
  const collection = method === 'POST' || choices.chance(method === 'GET' ? 0.4 : 0.03);
  const name = choices.chance(0.06) ? choices.one(ODD_NAMES) : choices.one(NAMES);
  const subresource =
    !collection || choices.chance(0.03) ? (choices.chance(0.12) ? choices.one(SUBRESOURCES) : '') : '';
  let path = `${root}${scope}/${target.plural}`;
  if (!collection || subresource !== '') path += `/${name}`;
  if (subresource !== '') path += `/${subresource}`;
  if (choices.chance(0.03)) path += choices.one(['/', '//', '/x', '/..', '/%2e%2e/', '/x/y/z', '%', '\x01']);
  if (choices.chance(0.02)) path = path.replace('/', choices.one(['//', '/./', '/../', '/%2f', '\\']));
  if (choices.chance(0.01))
    path =
      path.slice(0, choices.below(path.length)) +
      choices
        .one(TEXTS)
        .replaceAll(/[^\x21-\x7e]/g, '%20')
        .slice(0, 6000);
  return { path, name, subresource };
}

/** The input with this number in the run with this seed. */
export function inputOf(seed: number, index: number): Input {
  const choices = new Choices(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  // The first numbers of neighbouring seeds are similar.
  for (let skip = 0; skip < 4; skip++) choices.random();
  const target = targetOf(choices);
  const method = choices.chance(0.04)
    ? choices.one(METHODS)
    : choices.one([
        'GET',
        'GET',
        'GET',
        'POST',
        'POST',
        'POST',
        'PUT',
        'PUT',
        'PATCH',
        'PATCH',
        'PATCH',
        'PATCH',
        'DELETE',
      ]);
  const made = pathOf(choices, target, method);
  const path = choices.chance(0.05) ? choices.one(ROOTS) : made.path;
  const body = bodyOf(choices, target, method, made.name);
  const headers = headersOf(choices, body?.type);
  let bytes = body?.bytes;
  if (
    bytes !== undefined &&
    headers.some(([name, held]) => name === 'content-encoding' && held === 'gzip') &&
    choices.chance(0.7)
  )
    bytes = gzipSync(bytes);
  const requested = query(choices);
  const as = choices.chance(0.95) ? 'admin' : choices.one(['user', 'nobody'] as const);
  const reads = method === 'GET' || method === 'HEAD';
  const openEnded =
    (reads && (/[?&]watch=(?!false)/.test(requested) || path.includes('/watch/'))) ||
    STREAMS.has(made.subresource) ||
    path.includes('proxy');
  return { index, method, path: (path + requested).replaceAll(/[\r\n ]/g, '%20'), headers, body: bytes, as, openEnded };
}
