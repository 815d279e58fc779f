/** Oracle for request attributes: one regular expression over the decoded path. Also generates random paths. */
import type { Choices } from '../core/patch/choices.ts';

export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Reading {
  readonly attributes: Attributes;
  /** Whether the path is below `namespaces/NAMESPACE/`. */
  readonly below: boolean;
  /** Whether the name comes from the field selector. */
  readonly selected: boolean;
  readonly tail: string;
}

const VERBS = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);
/** NUL separates the segments, because no segment may contain it. */
const PATH = new RegExp(
  [
    '^(?:api\\0(?<core>[^\\0]*)|apis\\0(?<group>[^\\0]*)\\0(?<version>[^\\0]*))(?<watch>\\0watch(?=\\0))?',
    '(?:\\0namespaces\\0(?<namespace>[^\\0]*)(?=\\0(?!(?:status|finalize)(?:\\0|$))))?',
    '\\0(?<resource>[^\\0]*)(?:\\0(?<name>[^\\0]*)(?:\\0(?<subresource>[^\\0]*)(?<tail>(?:\\0.*)?))?)?$',
  ].join(''),
  's',
);

/** Undefined for a rejected path and for a path without a resource. */
export function readAttributes(method: string, url: string): Reading | undefined {
  const [path = '', search = ''] = url.split('?', 2);
  const query = new URLSearchParams(search);
  const raw = path.slice(1).replace(/\/$/, '').split('/');
  const decoded = raw.map((segment) => {
    try {
      return decodeURIComponent(segment);
    } catch {
      return '..';
    }
  });
  const { groups } = PATH.exec(decoded.join('\0')) ?? {};
  // The first segment is not decoded; with an escape it is not a path of the API.
  if (groups === undefined || raw[0] !== decoded[0]) return undefined;
  const { core, group = '', version = core ?? '', watch, resource = '', subresource = '', tail = '' } = groups;
  const isProxied = group === '' && subresource === 'proxy';
  const judged = isProxied ? decoded.slice(0, decoded.length - (tail.split('\0').length - 1)) : decoded;
  if (judged.some((segment) => /^\.{1,2}$|[/\\\0]/.test(segment) || segment === '')) return undefined;
  let { name = '' } = groups;
  let verb = watch === undefined ? (VERBS.get(method) ?? '') : 'watch';
  let selected = false;
  if (name === '') {
    if (verb === 'get') verb = ['1', 'true'].includes(query.get('watch') ?? '') ? 'watch' : 'list';
    if (verb === 'delete') verb = 'deletecollection';
    const wanted = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '')?.[1];
    if (wanted !== undefined && ['list', 'watch', 'deletecollection'].includes(verb)) {
      name = wanted;
      selected = true;
    }
  }
  const below = groups['namespace'] !== undefined;
  const ofNamespace = group === '' && resource === 'namespaces' && !selected ? name : '';
  const namespace = groups['namespace'] ?? ofNamespace;
  return {
    attributes: { verb, group, version, resource, subresource, namespace, name },
    below,
    selected,
    tail: isProxied
      ? `/${path
          .split('/')
          .slice(raw.length - tail.split('\0').length + 2)
          .join('/')}`
      : '',
  };
}

const PLACES = [
  '/api/v1',
  '/apis/apps/v1',
  '/apis/fuzz.example.com/v1',
  '/apis/agg.example.com/v1',
  '/apis/rbac.authorization.k8s.io/v1',
];
const ODD_PLACES = [
  '/api',
  '/apis',
  '/apis/apps',
  '//api/v1',
  '/api//v1',
  '/api/v%31',
  '/%61pi/v1',
  '/apis/apps%2fv1',
  '/api/v1/watch',
];
const RESOURCES = [
  ...[
    'namespaces',
    'nodes',
    'pods',
    'services',
    'configmaps',
    'secrets',
    'serviceaccounts',
    'deployments',
    'clusterroles',
  ],
  ...['roles', 'gadgets', 'widgets', 'bindings', 'watch', 'status', 'proxy'],
];
const NAMES = ['mine', 'other', 'one', 'two', 'n1', 'one:80', 'p%6Fne', 'none', 'namespaces'];
const SUBRESOURCES = [
  ...['status', 'finalize', 'scale', 'proxy', 'exec', 'attach', 'portforward', 'log', 'token', 'binding', 'eviction'],
  'nothing',
];
const ODD = [
  '',
  '.',
  '..',
  '%2e%2e',
  '%2f',
  'a%2fb',
  '%00',
  '%zz',
  '%5c',
  'x%20y',
  'x%0ay',
  'namespaces',
  'watch',
  'mine',
];
const QUERIES = [
  ...[
    'watch=1',
    'watch=true',
    'watch=false',
    'fieldSelector=metadata.name%3Done',
    'fieldSelector=metadata.name%3Dother',
  ],
  ...['fieldSelector=metadata.namespace%3Dother', 'labelSelector=a%3Db', 'limit=1', 'follow=1', 'timeoutSeconds=1'],
];

const STREAMED = [
  'nodes/n1/proxy',
  'pods/one/proxy',
  'services/one/proxy',
  ...['exec', 'attach', 'portforward'].map((each) => `pods/one/${each}`),
];

/** A path of an upgrade, sometimes in the wrong scope. */
export function someStream(choices: Choices): string {
  const watched = choices.chance(0.2) ? '/watch' : '';
  const place = choices.chance(0.7) ? `/namespaces/${choices.one(['mine', 'other', 'none'])}` : '';
  const tail = choices.chance(0.3) ? `/${choices.one(['pods', 'a/b', '..', ''])}` : '';
  return `/api/v1${watched}${place}/${choices.one(STREAMED)}${tail}${choices.chance(0.5) ? '?command=id' : ''}`;
}

/** A path that is mostly valid, with random changes. */
export function somePath(choices: Choices): string {
  const parts: string[] = [];
  if (choices.chance(0.08)) parts.push('watch');
  if (choices.chance(0.6)) parts.push('namespaces', choices.one(NAMES));
  if (choices.chance(0.12)) parts.push('namespaces', choices.one(NAMES));
  if (choices.chance(0.95)) parts.push(choices.one(RESOURCES));
  if (choices.chance(0.7)) {
    parts.push(choices.one(NAMES));
    if (choices.chance(0.45)) parts.push(choices.one(SUBRESOURCES));
    if (choices.chance(0.1)) parts.push(choices.one(ODD), choices.one(NAMES));
  }
  if (choices.chance(0.12)) parts.splice(choices.below(parts.length + 1), choices.below(2), choices.one(ODD));
  if (choices.chance(0.05)) parts.push('');
  const place = choices.one(choices.chance(0.05) ? ODD_PLACES : PLACES);
  const query = choices.chance(0.25) ? `?${choices.some(QUERIES, 1, 2).join('&')}` : '';
  return `${[place, ...parts].join('/')}${query}`;
}
