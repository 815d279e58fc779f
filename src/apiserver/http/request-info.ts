/**
 * Parses the method and path of a request. This is the only place that parses paths: authorization, audit, flow control
 * and the handlers all use the result. Source: k8s.io/apiserver/pkg/endpoints/request RequestInfoFactory.
 */
import { ApiError } from '../../api/meta/status.ts';
import { parseFieldSelector, requiredFieldValue } from '../../base/selector.ts';

export interface ResourceRequestInfo {
  readonly resource: true;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  /**
   * Namespace of the request; '' without a namespace. For a request for a namespace object, the name of this object.
   */
  readonly namespace: string;
  /**
   * True if the path contains `namespaces/NAMESPACE/`. Cluster-scoped resources are not served below this path, and
   * single namespaced objects are served only below it.
   */
  readonly inNamespace: boolean;
  readonly plural: string;
  readonly name: string;
  /** True if `name` comes from the field selector. False: from the path. */
  readonly selected: boolean;
  readonly subresource: string;
  /**
   * Rest of the path after the subresource, undecoded, with a leading slash. Used by `proxy` and by resources of
   * aggregated servers.
   */
  readonly tail: string;
}

export interface PathRequestInfo {
  readonly resource: false;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly verb: string;
}

export type RequestInfo = ResourceRequestInfo | PathRequestInfo;

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
const PROJECTS = 'project.openshift.io';
const NO_QUERY = new URLSearchParams();
const MAX_PATH = 8 * 1024;
/**
 * Subresources of a namespace, in every group as in upstream. Any other segment in this place is a namespaced resource.
 */
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(['status', 'finalize']);
const PLAIN_SEGMENT = /^[A-Za-z0-9._:~@-]*$/;

/**
 * Decodes a path segment. Rejects an escaped separator or NUL and dot segments, which would change the meaning of the
 * path.
 */
function segment(raw: string): string {
  let text = raw;
  if (!PLAIN_SEGMENT.test(raw)) {
    try {
      text = decodeURIComponent(raw);
    } catch {
      throw new ApiError('BadRequest', 'the request path has an invalid escape');
    }
    if (/[/\\\0]/.test(text)) throw new ApiError('BadRequest', 'the request path has an escaped separator or NUL');
  }
  if (text === '.' || text === '..') throw new ApiError('BadRequest', 'the request path has a dot segment');
  return text;
}

export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** Longer URLs are not cached, which limits the size of the cache in bytes. */
const MAX_REMEMBERED_URL = 512;
const MAX_REMEMBERED = 1024;
type Known = Map<string, RequestInfo>;
/** The newer and the older half of the cache, by method. */
let known: Readonly<Record<string, Known>> = forgotten();
let older = known;
let rememberedCount = 0;

function forgotten(): Readonly<Record<string, Known>> {
  return Object.fromEntries(Object.keys(VERBS).map((method) => [method, new Map()]));
}

/**
 * Parses the method and URL. Results for paths without a query are cached; the same object is returned while it is in
 * the cache, so that callers may use it as a key. Throws 'BadRequest'.
 */
export function parseRequestInfo(method: string, url: string): RequestInfo {
  const remembered = known[method];
  if (remembered === undefined || url.length > MAX_REMEMBERED_URL) return readRequestInfo(method, url);
  let info = remembered.get(url);
  if (info !== undefined) return info;
  info = older[method]?.get(url) ?? readRequestInfo(method, url);
  if (info.query !== NO_QUERY) return info;
  if (rememberedCount >= MAX_REMEMBERED) {
    older = known;
    known = forgotten();
    rememberedCount = 0;
  }
  known[method]?.set(url, info);
  rememberedCount += 1;
  return info;
}

function readRequestInfo(method: string, url: string): RequestInfo {
  if (url.length > MAX_PATH * 4) throw new ApiError('BadRequest', 'the request URI is too long');
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  if (!path.startsWith('/') || path.length > MAX_PATH || path.includes('\0')) {
    throw new ApiError('BadRequest', 'the request path is malformed');
  }
  const query = mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1));
  const parts = path.split('/');
  const root = parts[1];
  let at: number;
  let group: string;
  let version: string;
  if (root === 'api' && parts.length > 3) {
    group = '';
    version = named(parts[2]);
    at = 3;
  } else if (root === 'apis' && parts.length > 4) {
    group = named(parts[2]);
    version = named(parts[3]);
    at = 4;
  } else {
    return pathInfo(method, path, query, parts);
  }
  // A trailing slash makes no difference, as in upstream's splitPath.
  const last = parts.at(-1) === '' ? parts.length - 1 : parts.length;
  if (at >= last) return pathInfo(method, path, query, parts);
  let verb = VERBS[method] ?? '';
  if (parts[at] === 'watch' && at + 1 < last) {
    verb = 'watch';
    at += 1;
  }
  const place = readPlace(parts, at, last, group);
  at = place.at;
  let name = at + 1 < last ? named(parts[at + 1]) : '';
  const subresource = at + 2 < last ? named(parts[at + 2]) : '';
  const tail = at + 3 < parts.length ? `/${parts.slice(at + 3).join('/')}` : '';
  // Below `proxy` of the core group, segments belong to the pod, service or node. Segments of other paths must be
  // valid, because aggregated servers rely on this parser for authorization.
  if (subresource !== 'proxy' || group !== '') for (const part of parts.slice(at + 3, last)) named(part);
  let selected = false;
  if (name === '') {
    if (verb === 'get') verb = isTrue(query.get('watch')) ? 'watch' : 'list';
    else if (verb === 'delete') verb = 'deletecollection';
    // A list that selects one object by name is authorized like a get of that object.
    const selector =
      verb === 'list' || verb === 'watch' || verb === 'deletecollection' ? query.get('fieldSelector') : null;
    if (selector?.includes('metadata.name')) name = nameInSelector(selector);
    selected = name !== '';
  }
  const { namespace, inNamespace, plural } = place;
  return {
    resource: true,
    path,
    query,
    verb,
    group,
    version,
    namespace,
    inNamespace,
    plural,
    name,
    selected,
    subresource,
    tail,
  };
}

interface Place extends Pick<ResourceRequestInfo, 'namespace' | 'inNamespace' | 'plural'> {
  /** Index of the resource in the path. */
  readonly at: number;
}

/** Parses `RESOURCE`, `namespaces/NAMESPACE/RESOURCE` or `namespaces/NAME[/SUBRESOURCE]` from index `at` on. */
function readPlace(parts: readonly string[], at: number, last: number, group: string): Place {
  const plural = named(parts[at]);
  // A project is a namespace, so roles in that namespace apply.
  if (plural === 'projects' && group === PROJECTS && at + 1 < last)
    return { namespace: named(parts[at + 1]), inNamespace: false, plural, at };
  if (plural !== 'namespaces' || at + 1 >= last) return { namespace: '', inNamespace: false, plural, at };
  const namespace = named(parts[at + 1]);
  const below = at + 2 < last ? named(parts[at + 2]) : '';
  if (below !== '' && !NAMESPACE_SUBRESOURCES.has(below))
    return { namespace, inNamespace: true, plural: below, at: at + 2 };
  // Role bindings exist only in namespaces of the core group.
  return { namespace: group === '' ? namespace : '', inNamespace: false, plural, at };
}

/** Like `segment`, but rejects an empty segment, which would shift the meaning of the following segments. */
function named(raw: string | undefined): string {
  if (raw === undefined || raw === '') throw new ApiError('BadRequest', 'the request path has an empty segment');
  return segment(raw);
}

function nameInSelector(selector: string): string {
  try {
    return requiredFieldValue(parseFieldSelector(selector), 'metadata.name') ?? '';
  } catch {
    // The error is reported later, where the selector is used.
    return '';
  }
}

function pathInfo(method: string, path: string, query: URLSearchParams, parts: readonly string[]): PathRequestInfo {
  for (const part of parts) segment(part);
  return { resource: false, path, query, verb: method.toLowerCase() };
}
