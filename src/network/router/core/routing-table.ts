/**
 * The routing table: host → longest path → servers. It is rebuilt as a whole from the objects. A lookup is a map access
 * and a scan of one host's rows.
 */
import type { Found, Redirect, RequestFacts, RoutingView, TlsFound } from './port.ts';
import { compareAges, matchesPath, type Row, rewrittenPath } from './table-rows.ts';

export interface Ports {
  readonly http: number;
  readonly https: number;
}

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const NONE: Found = { kind: 'none' };
const REFUSED: TlsFound = { kind: 'refused' };
const MISDIRECTED: Found = { kind: 'misdirected' };

/** Rows of a host, sorted so that the first row that matches is the most specific. */
type HostRows = readonly Row[];

export class RoutingTable implements RoutingView {
  readonly #exact = new Map<string, Row[]>();
  readonly #wild = new Map<string, Row[]>();
  readonly #ports: Ports;
  readonly #refused: ReadonlySet<string>;
  readonly #ownerOf: (host: string) => string | undefined;
  readonly rows: readonly Row[];

  /**
   * @param refused Names and `*.NAME` of listeners without a usable certificate, for hosts whose TLS no row terminates.
   * @param ownerOf Namespace that owns an exact name, even without rows.
   */
  constructor(
    rows: readonly Row[],
    ports: Ports,
    refused: ReadonlySet<string> = new Set(),
    ownerOf: (host: string) => string | undefined = () => undefined,
  ) {
    this.#ports = ports;
    this.#refused = refused;
    this.#ownerOf = ownerOf;
    this.rows = rows;
    for (const row of rows) {
      const map = row.wildcard === 'none' ? this.#exact : this.#wild;
      const known = map.get(row.host);
      if (known === undefined) map.set(row.host, [row]);
      else known.push(row);
    }
    for (const map of [this.#exact, this.#wild]) for (const found of map.values()) found.sort(bySpecificity);
  }

  get size(): number {
    return this.rows.length;
  }

  tls(serverName: string): TlsFound {
    for (const rows of this.#hosts(serverName)) {
      if (rows[0]?.host === '' && this.#isRefused(serverName)) return REFUSED;
      const passthrough = rows.find(({ tls }) => tls === 'passthrough');
      if (passthrough !== undefined) return { kind: 'passthrough', backend: passthrough.backend };
      const own = rows.find((row) => row.tls === 'terminate' && row.certificate !== undefined)?.certificate;
      if (own !== undefined || rows.some(({ tls }) => tls === 'terminate'))
        return { kind: 'terminate', certificate: own };
      if (rows.some(({ tls }) => tls === 'refused')) return REFUSED;
    }
    return this.#isRefused(serverName) ? REFUSED : { kind: 'terminate', certificate: undefined };
  }

  #isRefused(name: string): boolean {
    if (this.#refused.size === 0) return false;
    if (this.#refused.has(name)) return true;
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
      if (this.#refused.has(`*${name.slice(dot)}`)) return true;
    return false;
  }

  request(facts: RequestFacts): Found {
    for (const rows of this.#hosts(facts.host)) {
      for (const row of rows) {
        if (!matchesPath(row.path, facts.path)) continue;
        if (row.method !== undefined && row.method !== facts.method) continue;
        if (!row.headers.every(({ name, value }) => facts.header(name) === value)) continue;
        const found = this.#answer(row, facts);
        if (found !== undefined) return found;
      }
    }
    return NONE;
  }

  /**
   * Result for a request to the row. Undefined if the row does not serve the connection's kind (plain or TLS). The
   * caller then tries the next row, which may have the same path.
   */
  #answer({ backend, tls, insecure }: Row, facts: RequestFacts): Found | undefined {
    if (facts.secure && tls === 'none') return undefined;
    if (facts.secure && (tls === 'passthrough' || tls === 'refused')) return MISDIRECTED;
    if (!facts.secure && insecure === 'none') return undefined;
    if (!facts.secure && insecure === 'redirect') {
      const port = this.#ports.https === HTTPS_PORT ? '' : `:${this.#ports.https}`;
      return { kind: 'redirect', status: 302, location: `https://${facts.host}${port}${facts.path}${facts.query}` };
    }
    const { redirect, options, path } = backend;
    if (redirect !== undefined)
      return { kind: 'redirect', status: redirect.status, location: this.#locationOf(redirect, path, facts) };
    const target = options.rewrite === undefined ? facts.path : rewrittenPath(facts.path, path, options.rewrite);
    return { kind: 'backend', backend, path: target + facts.query };
  }

  #locationOf({ scheme, host, port, path }: Redirect, matched: string, facts: RequestFacts): string {
    const to = scheme ?? (facts.secure ? 'https' : 'http');
    const standard = to === 'https' ? HTTPS_PORT : HTTP_PORT;
    const own = to === 'https' ? this.#ports.https : this.#ports.http;
    const at = port ?? own;
    const given =
      path === undefined
        ? facts.path
        : path.kind === 'full'
          ? path.value
          : rewrittenPath(facts.path, matched, path.value);
    return `${to}://${host ?? facts.host}${at === standard ? '' : `:${at}`}${given}${facts.query}`;
  }

  /**
   * Candidate rows: first the host's own rows, then those of wildcards from the longest to the shortest, then rows
   * without a host. A host that a namespace has claimed is served only by rows of that namespace.
   */
  *#hosts(host: string): Generator<HostRows> {
    let owner = this.#ownerOf(host);
    for (const level of this.#levels(host)) {
      const holder = level[0]?.host === '' ? undefined : level[0]?.backend.namespace;
      owner ??= holder;
      // All rows of one host name or wildcard belong to one namespace. Rows without a host, which match every host, may
      // be of several namespaces and are filtered by the owner.
      const rows =
        owner === undefined || owner === holder ? level : level.filter(({ backend }) => backend.namespace === owner);
      if (rows.length > 0) yield rows;
    }
  }

  *#levels(host: string): Generator<HostRows> {
    const own = host === '' ? undefined : this.#exact.get(host);
    if (own !== undefined) yield own;
    let isNext = true;
    for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
      const wild = this.#wild.get(host.slice(dot + 1));
      if (wild !== undefined) {
        const fitting = isNext ? wild : wild.filter(({ wildcard }) => wildcard === 'any');
        if (fitting.length > 0) yield fitting;
      }
      isNext = false;
    }
    const all = this.#exact.get('');
    if (all !== undefined) yield all;
  }
}

function bySpecificity(a: Row, b: Row): number {
  if (a.path.kind !== b.path.kind && a.path.value === b.path.value) return a.path.kind === 'exact' ? -1 : 1;
  const length = (row: Row): number => row.path.value.length;
  if (length(a) !== length(b)) return length(b) - length(a);
  if ((a.method === undefined) !== (b.method === undefined)) return a.method === undefined ? 1 : -1;
  return b.headers.length - a.headers.length || compareAges(a.age, b.age);
}
