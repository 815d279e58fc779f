/**
 * All pages in a browser against a small API server in this process: no uncaught error, no violation of the content
 * security policy or of accessibility rules, hostile texts stay text, and refused actions are disabled with a reason.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { bundleConsole } from '../../../build/console.ts';

const CHROMIUM = process.env['HYPEREDGE_CHROMIUM'] ?? '/usr/bin/chromium';
const skip = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed (apt-get install chromium)`;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";
const HOSTILE = '<img src=x onerror="document.title=1">';
const PATHS = [
  '/',
  '/nodes',
  '/nodes/n1',
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

/** Heap of a page after garbage collection varies by less. */
const IDLE_GROWTH_BYTES = 1 << 20;

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
  ],
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
function historyOf(url: URL): object {
  const count = Number(url.searchParams.get('points'));
  const values = Array.from({ length: count }, (_, index) => (index === 5 ? null : 1 + Math.sin(index / 9)));
  const wanted = (url.searchParams.get('metric') ?? '').split(',');
  const metrics = Object.fromEntries(
    wanted.map((name) => {
      const unit = HISTORY_UNITS[name];
      const known = unit === undefined ? values.map(() => null) : values;
      return [name, { unit: unit ?? 'celsius', average: known, max: known }];
    }),
  );
  return { from: new Date(Date.now() - count * 30_000).toISOString(), stepSeconds: 30, series: [{ metrics }] };
}

/** Pixels of the first plot that have the colour of the first line in the current theme. */
const DRAWN = `(() => {
  const canvas = document.querySelector('.plot canvas');
  const text = getComputedStyle(document.documentElement).getPropertyValue('--series-1').trim();
  const wanted = [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && wanted.every((each, index) => Math.abs(data[at + index] - each) < 12)) count++;
  return count;
})()`;

Object.assign(OBJECTS, {
  rigs: [
    {
      metadata: { ...metadata('bench'), namespace: undefined },
      spec: { console: {}, power: { on: {} } },
      status: {
        history: [0, 1, 2].map((index) => ({
          ...{
            namespace: 'default',
            name: `${HOSTILE}${index}`,
            uid: `u${index}`,
            requester: `${HOSTILE}${index % 2}`,
          },
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
  machineconfigs: [1, 2].map((number) => ({ metadata: { name: `m${number}` }, spec: { number, text: HOSTILE } })),
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
  ...{ directory: '/d', every: HOSTILE, keep: 3, isSaving: true, scheduledDirectory: HOSTILE },
  snapshots: [{ name: HOSTILE, revision: 1, takenAt: HOSTILE, bytes: 5 }],
};

class ApiServer {
  readonly #files = new Map<string, { readonly type: string; readonly body: Buffer }>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));
  /** Responses of open watches. */
  readonly watches = new Set<ServerResponse>();
  url = '';

  async start(directory: string): Promise<void> {
    const { manifest, contents } = await bundleConsole(directory);
    const { files } = JSON.parse(await readFile(manifest, 'utf8')) as {
      files: { name: string; type: string; offset: number; length: number }[];
    };
    const bytes = await readFile(contents);
    for (const { name, type, offset, length } of files)
      this.#files.set(name, { type, body: gunzipSync(bytes.subarray(offset, offset + length)) });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    const send = (value: unknown, code = 200): void => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (url.pathname === '/oauth/authorize') {
      const { state = '' } = Object.fromEntries(url.searchParams);
      response.writeHead(302, { location: `/console/callback?code=c&state=${encodeURIComponent(state)}` });
      response.end();
    } else if (url.pathname === '/oauth/token') send({ access_token: 'token' });
    else if (url.pathname.startsWith('/console/')) this.#file(url.pathname.slice('/console/'.length), response);
    else if (url.pathname.endsWith('selfsubjectaccessreviews')) send({ status: { allowed: false } });
    else if (url.pathname.endsWith('selfsubjectreviews')) send({ status: { userInfo: { username: 'viewer' } } });
    else if (url.pathname.endsWith('/proxy/hyperedge/store')) send(STORE);
    else if (url.pathname.endsWith('/proxy/hyperedge/snapshots')) send(SNAPSHOTS);
    else if (url.pathname.endsWith('/proxy/metrics/history')) send(historyOf(url));
    else if (url.searchParams.get('watch') === 'true') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
      this.watches.add(response);
      response.once('close', () => this.watches.delete(response));
    } else this.#list(url, request.headers.accept ?? '', send);
  }

  #file(name: string, response: ServerResponse): void {
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

describe('pages in a browser', { skip, timeout: 480_000 }, () => {
  const server = new ApiServer();
  const directory = join(tmpdir(), `he-pages-${process.pid}`);
  let browser: Browser;
  before(async () => {
    await server.start(directory);
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: 120_000,
    });
  });
  after(async () => {
    await browser?.close();
    server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const opened = async (width: number): Promise<{ page: Page; faults: string[] }> => {
    const page = await browser.newPage({ viewport: { width, height: 740 } });
    page.setDefaultTimeout(60_000);
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(`${page.url()}: ${String(error)}`));
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) faults.push(`${page.url()}: ${message.text()}`);
    });
    return { page, faults };
  };

  test('pages in a browser show hostile texts as text and have no violations of accessibility rules', async () => {
    const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const { page, faults } = await opened(1_200);
    for (const path of PATHS) {
      await page.goto(`${server.url}/console${path}`);
      await page.waitForSelector('#view h1');
      await page.waitForTimeout(300);
      await page.evaluate(axe);
      const found = (await page.evaluate('axe.run(document).then(({ violations }) => violations)')) as {
        id: string;
        nodes: { html: string; failureSummary: string }[];
      }[];
      for (const { id, nodes } of found)
        faults.push(`${path}: ${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`);
      assert.equal(await page.evaluate("document.querySelectorAll('main img').length"), 0, path);
    }
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('plot the usage of a node in both themes, with the same facts as text', async () => {
    const { page, faults } = await opened(1_200);
    await page.goto(`${server.url}/console/nodes/n1`);
    await page.waitForSelector('figure >> text=/used: average .* cores?, highest 2 cores, latest/');
    await page.waitForSelector('figure:has-text("Temperature") >> text=This host has no samples of it.');
    for (const theme of ['light', 'dark']) {
      await page.waitForSelector(`html[data-theme=${theme}] .plot canvas`);
      await page.waitForTimeout(500);
      assert.equal(await page.locator('.plot canvas').count(), 4);
      const drawn = Number(await page.evaluate(DRAWN));
      assert.ok(drawn > 50, `${theme}: ${drawn} pixels have the colour of the first line`);
      await page.click('button[aria-label$=" colours"]');
    }
    const label = await page.locator('.plot').first().getAttribute('aria-label');
    assert.match(label ?? '', /^Plot: CPU\. used: average .*capacity: 4 cores$/);
    await page.click('button:text-is("24h")');
    await page.waitForSelector('.plot canvas');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('draw the connections that network policies allow, highlighted by keyboard and usable on a small screen', async () => {
    const { page, faults } = await opened(360);
    await page.goto(`${server.url}/console/network?view=reach&ns=n`);
    await page.waitForSelector('tr:has-text("app=web"):has-text("app=db") >> text=TCP 5432–5434');
    const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    assert.ok(Number(wide) <= 0, `the page is ${wide} px wider than the screen`);
    // Only connections of addresses outside the cluster to the pod db are denied.
    assert.equal(await page.locator('svg path.edge').count(), 5);
    const db = page.locator('svg [role=button][aria-label^="app=db 1 pod"]');
    assert.match((await db.getAttribute('aria-label')) ?? '', /Reached by app=web on TCP 5432–5434\.$/);
    await db.focus();
    assert.equal(await page.locator('svg path.edge.active').count(), 3);
    await page.keyboard.press('Enter');
    assert.equal(await db.getAttribute('aria-pressed'), 'true');
    assert.equal(await page.locator('section[aria-label=Connections] tbody tr').count(), 3);
    await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'));
    assert.deepEqual(await page.evaluate('axe.run(document).then(({ violations }) => violations)'), []);
    await page.waitForSelector('footer code:text-is("kubectl describe networkpolicies.networking.k8s.io -n n")');
    assert.deepEqual(faults, []);
    await page.close();
  });

  test('pages that stay open for a day keep their number of watches and their heap', async () => {
    for (const path of ['/', '/workloads']) {
      const { page, faults } = await opened(1_200);
      await page.clock.install();
      await page.goto(`${server.url}/console${path}`);
      await page.waitForSelector('#view h1');
      const devtools = await page.context().newCDPSession(page);
      /** Lets due timers run once per step, as in a laptop that wakes up now and then. */
      const passHours = async (hours: number): Promise<{ watches: number; bytes: number }> => {
        for (let step = 0; step < hours * 2; step++) {
          await page.clock.fastForward(1_800_000);
          await page.waitForTimeout(150);
        }
        await page.waitForTimeout(500);
        await devtools.send('HeapProfiler.collectGarbage');
        const { usedSize } = await devtools.send('Runtime.getHeapUsage');
        return { watches: server.watches.size, bytes: usedSize };
      };
      const before = await passHours(2);
      const after = await passHours(22);
      const text = `${path}: ${before.watches} watches, ${before.bytes} bytes; after 22 hours ${after.watches}, ${after.bytes}`;
      console.log(text);
      assert.ok(before.watches > 0, text);
      assert.equal(after.watches, before.watches, text);
      assert.ok(after.bytes - before.bytes < IDLE_GROWTH_BYTES, text);
      assert.deepEqual(faults, []);
      await page.close();
    }
  });

  test('pages in a browser explain a pod, and disable refused actions with the reason', async () => {
    const { page } = await opened(1_200);
    await page.goto(`${server.url}/console/pods/n/p0`);
    await page.waitForSelector('.finding >> text=the image reg/app:1');
    const button = page.locator('button', { hasText: 'Delete' });
    await page.waitForSelector('button[title*="You may not delete pods in namespace n"]');
    assert.equal(await button.getAttribute('aria-disabled'), 'true');
    await page.goto(`${server.url}/console/nodes/n1`);
    await page.waitForSelector('section[aria-label=Doctor] button[title*="You may not create nodes/proxy"]');
    await page.close();
  });
});
