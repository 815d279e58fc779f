/** The bundled console with a small API server in this process, for tests of its pages in a browser. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { gunzipSync } from 'node:zlib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { bundleConsole } from '../../../build/console.ts';
import { createSelfSigned, lifetimeFrom } from '../../../src/pki/certificate.ts';

const CHROMIUM = process.env['HYPEREDGE_CHROMIUM'] ?? '/usr/bin/chromium';
export const skip = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed (apt-get install chromium)`;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";
export const HOSTILE = '<img src=x onerror="document.title=1">';
/** Addresses of all pages. */
export const PATHS = [
  '/',
  '/nodes',
  '/nodes/n1',
  '/nodes/n2',
  '/workloads',
  '/workloads?kind=cronjobs',
  '/workloads/deployments/n/web',
  '/pods',
  '/pods/n/p0',
  '/create',
  '/network',
  '/network?view=networkpolicies',
  '/network?view=reach&ns=n',
  '/storage',
  '/storage?view=images',
  '/storage?view=missing',
  '/storage?view=upload',
  '/configuration',
  '/configuration?view=resourcequotas',
  '/secrets/n/s',
  '/who-can',
  '/what-can',
  '/rigs',
  '/rigs/bench',
  '/rigclaims/n/claim',
  '/hosts',
  '/hosts?view=join',
  '/hosts?view=store',
  '/hosts?view=upload',
  '/hosts?view=revisions',
  '/hosts?view=differences',
  '/operators',
  '/resources',
  '/resources/core/v1/pods',
  '/resources/core/v1/pods/p0?ns=n',
];

const CREATED = '2026-01-01T00:00:00Z';
const metadata = (name: string) => ({
  name,
  namespace: 'n',
  uid: name,
  resourceVersion: '1',
  creationTimestamp: CREATED,
});
const container = { name: 'app', image: 'reg/app:1' };
const brokenPod = (name: string) => ({
  metadata: metadata(name),
  spec: { containers: [container], nodeName: 'n1' },
  status: {
    phase: 'Pending',
    containerStatuses: [
      { ...container, ready: false, restartCount: 0, state: { waiting: { reason: 'ErrImagePull', message: HOSTILE } } },
    ],
  },
});
const labelledPod = (app: string, podIP: string) => ({
  metadata: { ...metadata(app), labels: { app } },
  spec: { containers: [container] },
  status: { phase: 'Running', podIP },
});
const READY = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: HOSTILE, lastTransitionTime: CREATED };
const OBJECTS: Readonly<Record<string, readonly object[]>> = {
  pods: [
    ...Array.from({ length: 2_000 }, (_, index) => brokenPod(`p${index}`)),
    ...[labelledPod('db', '10.0.0.1'), labelledPod('web', '10.0.0.2')],
  ],
  namespaces: [{ metadata: { name: 'n', uid: 'n' } }],
  networkpolicies: [
    {
      metadata: metadata('db'),
      spec: {
        podSelector: { matchLabels: { app: 'db' } },
        ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 5432, endPort: 5434 }] }],
      },
    },
  ],
  nodes: [
    {
      metadata: { name: 'n1', uid: 'n1', labels: { 'node-role.kubernetes.io/master': '' } },
      spec: {},
      status: { conditions: [READY], allocatable: { cpu: '4', memory: '8Gi' }, capacity: { cpu: '4', memory: '8Gi' } },
    },
    // A host without power.
    {
      metadata: { name: 'n2', uid: 'n2' },
      spec: {},
      status: {
        conditions: [{ ...READY, status: 'Unknown', reason: 'NodeStatusUnknown' }],
        allocatable: { cpu: '4', memory: '8Gi' },
        capacity: { cpu: '4', memory: '8Gi' },
      },
    },
  ],
  leases: [{ metadata: { name: 'n2' }, spec: { renewTime: CREATED } }],
  deployments: [
    { metadata: metadata('web'), spec: { replicas: 2, selector: { matchLabels: { app: 'web' } } }, status: {} },
  ],
  events: [
    {
      metadata: metadata('e'),
      involvedObject: { kind: 'Pod', name: 'p0', uid: 'p0' },
      reason: 'Failed',
      message: HOSTILE,
    },
  ],
  secrets: [{ metadata: metadata('s'), type: 'Opaque', data: { password: 'Z2VoZWlt' } }],
  resourcequotas: [{ metadata: metadata('q'), status: { hard: { pods: '10' }, used: { pods: '3' } } }],
};

const HISTORY_UNITS: Readonly<Record<string, string>> = {
  cpu: 'cores',
  memory: 'bytes',
  pressureCpu: 'ratio',
  networkReceive: 'bytes/s',
};

/** A response of `/metrics/history` with the metrics that have samples. */
function historyOf(url: URL, withheld: ReadonlySet<string>): object {
  const count = Number(url.searchParams.get('points'));
  const values = Array.from({ length: count }, (_, index) => (index === 5 ? null : 1 + Math.sin(index / 9)));
  const wanted = (url.searchParams.get('metric') ?? '').split(',').filter((name) => !withheld.has(name));
  const metrics = Object.fromEntries(
    wanted.map((name) => {
      const unit = HISTORY_UNITS[name];
      const known = unit === undefined ? values.map(() => null) : values;
      return [name, { unit: unit ?? 'celsius', average: known, max: known }];
    }),
  );
  return { from: new Date(Date.now() - count * 30_000).toISOString(), stepSeconds: 30, series: [{ metrics }] };
}

Object.assign(OBJECTS, {
  rigs: [
    {
      metadata: { ...metadata('bench'), namespace: undefined },
      spec: { console: {}, power: { on: {} } },
      status: {
        history: [0, 1, 2].map((index) => ({
          namespace: 'default',
          name: `${HOSTILE}${index}`,
          uid: `u${index}`,
          requester: `${HOSTILE}${index % 2}`,
          grantedAt: new Date(Date.now() - (index + 1) * 3_600_000).toISOString(),
          ...(index === 0
            ? {}
            : { endedAt: new Date(Date.now() - index * 3_600_000).toISOString(), reason: 'Expired' }),
        })),
      },
    },
  ],
  rigclaims: [
    { metadata: metadata('claim'), spec: { rigName: 'bench' }, status: { phase: 'Granted', requester: HOSTILE } },
  ],
  kubeapiservers: [
    {
      metadata: { name: 'cluster' },
      status: {
        nodeStatuses: [
          { nodeName: 'n1', currentRevision: 2, lastFailedRevision: 3, lastFailedRevisionErrors: [HOSTILE] },
        ],
      },
    },
  ],
  configmaps: [1, 2].map((number) => ({
    metadata: metadata(`revision-status-${number}`),
    data: { status: 'good', reason: HOSTILE, settings: JSON.stringify({ number, text: HOSTILE }) },
  })),
  machineconfigs: [1, 2].map((number) => ({
    metadata: { name: `rendered-worker-d10414164d0ee7657f408744ee3b194${number}` },
    spec: { number, text: HOSTILE },
  })),
});

const STORE = {
  store: {
    state: 'known',
    value: {
      quorum: false,
      members: [{ name: HOSTILE, id: '1', role: 'voter', state: 'unreachable', errors: [HOSTILE] }],
    },
  },
  ring: {
    state: 'known',
    value: [{ name: HOSTILE, roles: [HOSTILE], version: HOSTILE, state: 'dead', forMs: 1 }],
  },
};
const SNAPSHOTS = {
  directory: '/d',
  every: HOSTILE,
  keep: 3,
  isSaving: true,
  scheduledDirectory: HOSTILE,
  snapshots: [{ name: HOSTILE, revision: 1, takenAt: HOSTILE, bytes: 5 }],
};

const RECORDINGS = {
  items: [
    { node: HOSTILE, name: HOSTILE, start: HOSTILE, bytes: 5, isOpen: true },
    { node: 'n2', name: '2026-01-01T000000-000Z.log', start: CREATED, bytes: 5, isOpen: false },
  ],
  failures: [{ node: 'n3', message: HOSTILE }],
};

const usageOf = (name: string) => ({ metadata: { name }, usage: { cpu: '3', memory: '1Gi' } });

export class ApiServer {
  readonly #files = new Map<string, { readonly type: string; readonly body: Buffer }>();
  readonly #sockets = new Set<TLSSocket>();
  #server: Http2SecureServer | undefined;
  /** Whether the user may perform all actions. */
  allows = false;
  /** Whether the session of the user is valid. Without it, the API refuses tokens, and authorization ends at the login. */
  hasSession = true;
  /** Status of authorization requests instead of the redirect. */
  authorizeStatus: number | undefined;
  /** Metrics that the history does not contain. */
  readonly withheld = new Set<string>();
  /** Responses of open watches. */
  readonly watches = new Set<Http2ServerResponse>();
  /** Requests through the proxy of the host without power. They are never answered. */
  readonly toDeadHost: string[] = [];
  url = '';

  /** Starts the server with the bundle in `directory`. Without HTTP/2 it is like a server behind a TLS proxy. */
  async start(directory: string, { withoutHttp2 = false } = {}): Promise<void> {
    const { manifest, contents } = await bundleConsole(directory);
    const { files } = JSON.parse(await readFile(manifest, 'utf8')) as {
      files: { name: string; type: string; offset: number; length: number }[];
    };
    const bytes = await readFile(contents);
    for (const { name, type, offset, length } of files)
      this.#files.set(name, { type, body: gunzipSync(bytes.subarray(offset, offset + length)) });
    const names = { dns: ['localhost'], ips: ['127.0.0.1'] };
    const { certPem, keyPem } = await createSelfSigned('localhost', names, lifetimeFrom(Date.now(), 1));
    const server = createSecureServer(
      {
        cert: certPem,
        key: keyPem,
        allowHTTP1: true,
        ALPNCallback: ({ protocols }) => protocols.find((each) => each === (withoutHttp2 ? 'http/1.1' : 'h2')),
      },
      (...each) => this.#answer(...each),
    );
    server.on('secureConnection', (socket: TLSSocket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#server = server;
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #answer(request: Http2ServerRequest, response: Http2ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    const send = (value: unknown, code = 200): void => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (url.pathname === '/login') {
      if (this.hasSession) response.writeHead(302, { location: url.searchParams.get('then') ?? '/' });
      response.end();
    } else if (url.pathname === '/oauth/authorize' && this.authorizeStatus !== undefined)
      send({ error: 'server_error' }, this.authorizeStatus);
    else if (url.pathname === '/oauth/authorize' && !this.hasSession) {
      response.writeHead(302, { location: '/login' });
      response.end();
    } else if (/^\/apis?\//.test(url.pathname) && !this.hasSession)
      send({ kind: 'Status', reason: 'Unauthorized' }, 401);
    else if (url.pathname === '/oauth/authorize') {
      const { state = '' } = Object.fromEntries(url.searchParams);
      response.writeHead(302, { location: `/console/callback?code=c&state=${encodeURIComponent(state)}` });
      response.end();
    } else if (url.pathname === '/oauth/token') send({ access_token: 'token' });
    else if (url.pathname.startsWith('/console/')) this.#file(url.pathname.slice('/console/'.length), response);
    else if (url.pathname.endsWith('selfsubjectaccessreviews')) send({ status: { allowed: this.allows } });
    else if (url.pathname.endsWith('selfsubjectreviews')) send({ status: { userInfo: { username: 'viewer' } } });
    else if (url.pathname.startsWith('/api/v1/nodes/n2/proxy/')) this.toDeadHost.push(url.pathname);
    else if (url.pathname.endsWith('/proxy/hyperedge/store')) send(STORE);
    else if (url.pathname.endsWith('/rigs/bench/recordings')) send(RECORDINGS);
    else if (url.pathname.startsWith('/apis/metrics.k8s.io/')) send({ items: ['n1', 'n2'].map(usageOf) });
    else if (url.pathname.endsWith('/proxy/hyperedge/snapshots')) send(SNAPSHOTS);
    else if (url.pathname.endsWith('/proxy/metrics/history')) send(historyOf(url, this.withheld));
    else if (url.searchParams.get('watch') === 'true') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('');
      this.watches.add(response);
      response.once('close', () => this.watches.delete(response));
    } else this.#list(url, request.headers.accept ?? '', send);
  }

  #file(name: string, response: Http2ServerResponse): void {
    const { type, body } = this.#files.get(name) ?? this.#files.get('index.html') ?? { type: 'text/html', body: '' };
    response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY });
    response.end(body);
  }

  #list(url: URL, accept: string, send: (value: unknown, code?: number) => void): void {
    if (accept.includes('apidiscovery')) {
      const pods = { resource: 'pods', responseKind: { kind: 'Pod' }, scope: 'Namespaced', verbs: ['list'] };
      send({
        items: url.pathname === '/api' ? [{ metadata: {}, versions: [{ version: 'v1', resources: [pods] }] }] : [],
      });
      return;
    }
    const [, plural = '', name] =
      /\/(?:v1|v1beta1|v1alpha1)(?:\/namespaces\/[^/]+(?=\/))?\/([a-z]+)(?:\/(\w+))?$/.exec(url.pathname) ?? [];
    const wanted = /^metadata\.name=(.*)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1] ?? name;
    const items = (OBJECTS[plural] ?? []).filter(
      (each) => wanted === undefined || (each as { metadata: { name: string } }).metadata.name === wanted,
    );
    if (name !== undefined) send(items[0] ?? { kind: 'Status', reason: 'NotFound' }, items.length > 0 ? 200 : 404);
    else if (accept.includes('as=Table'))
      send({
        kind: 'Table',
        metadata: { resourceVersion: '1' },
        columnDefinitions: [{ name: 'Name', type: 'string', format: 'name' }],
        rows: items.map((object) => ({ cells: [(object as { metadata: { name: string } }).metadata.name], object })),
      });
    else send({ metadata: { resourceVersion: '1' }, items });
  }
}

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'], timeout: 120_000 });

/** Opens a page of this width. `faults` collects uncaught errors and violations of the content security policy. */
export async function openPage(
  browser: Browser,
  width: number,
): Promise<{ readonly page: Page; readonly faults: string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 740 }, ignoreHTTPSErrors: true });
  page.setDefaultTimeout(60_000);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`${page.url()}: ${String(error)}`));
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) faults.push(`${page.url()}: ${message.text()}`);
  });
  return { page, faults };
}
