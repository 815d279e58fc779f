/** A server that answers with anything: the client ends with an error and controls the terminal itself. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Outcome } from './calls.ts';
import { runClient } from './run-client.ts';

type Answer = (response: ServerResponse, query: URLSearchParams) => void;

const ESCAPE = '\x1b[2J\x1b]0;title\x07\r\u009b31m\u202e';
let server: Server;
let directory: string;
let answers: Readonly<Record<string, Answer>> = {};
let requests: string[] = [];

const json =
  (document: unknown): Answer =>
  (response) =>
    void response.end(JSON.stringify(document));

const resource = (name: string, kind: string): object => ({
  name,
  kind,
  namespaced: true,
  verbs: ['get', 'list', 'delete'],
});
const DISCOVERY: Readonly<Record<string, Answer>> = {
  '/api': json({ kind: 'APIVersions', versions: ['v1'] }),
  '/apis': json({ kind: 'APIGroupList', groups: [] }),
  '/api/v1': json({ kind: 'APIResourceList', resources: [resource('pods', 'Pod'), resource('events', 'Event')] }),
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-hostile-'));
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://x');
    requests.push(url.pathname + url.search);
    const answer = { ...DISCOVERY, ...answers }[url.pathname];
    response.setHeader('content-type', 'application/json');
    if (answer !== undefined) return answer(response, url.searchParams);
    response.statusCode = 404;
    json({ kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: `${ESCAPE} not found` })(
      response,
      url.searchParams,
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

async function run(given: typeof answers, ...args: string[]): Promise<Outcome> {
  answers = given;
  requests = [];
  process.env['KUBECACHEDIR'] = await mkdtemp(join(directory, 'cache-'));
  process.env['KUBERNETES_SERVICE_HOST'] = '';
  const { port } = server.address() as AddressInfo;
  return runClient(['--kubeconfig', '/dev/null', '--server', `http://127.0.0.1:${port}`, ...args]);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for control characters
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for control characters
const NEVER = /[\x1b\r\x07]/;
const PODS = '/api/v1/namespaces/default/pods';

const pod = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: `a${ESCAPE}`, namespace: ESCAPE, labels: { [ESCAPE]: ESCAPE }, annotations: { [ESCAPE]: ESCAPE } },
  spec: { nodeName: ESCAPE, containers: [{ name: ESCAPE, image: ESCAPE, command: [ESCAPE], env: [{ name: ESCAPE }] }] },
  status: { phase: ESCAPE, reason: ESCAPE, message: ESCAPE, conditions: [{ type: ESCAPE, status: ESCAPE }] },
};
const table = {
  kind: 'Table',
  columnDefinitions: [{ name: `Name${ESCAPE}` }, { name: 'Status' }],
  rows: [{ cells: [ESCAPE, `${ESCAPE}\nsecond line`], object: { metadata: pod.metadata } }],
};

test('shows control characters of the server as escapes', async () => {
  const one = {
    [`${PODS}/a`]: json(pod),
    '/api/v1/namespaces/%1B%5B2J%1B%5D0;title%07%0D%C2%9B31m%E2%80%AE/events': json({}),
  };
  const deletable = {
    [PODS]: json({ kind: 'PodList', apiVersion: 'v1', items: [pod] }),
    [`/api/v1/namespaces/${encodeURIComponent(ESCAPE)}/pods/a${encodeURIComponent(ESCAPE)}`]: json(pod),
  };
  const review = {
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews': json({ status: { allowed: false, reason: ESCAPE } }),
  };
  const calls: readonly (readonly [typeof answers, readonly string[]])[] = [
    [{ [PODS]: json(table) }, ['get', 'pods', '--show-labels', '-L', ESCAPE]],
    [{ [PODS]: json(table), '/api/v1/pods': json(table) }, ['get', 'pods', '-A']],
    [one, ['describe', 'pod', 'a']],
    [one, ['get', 'pod', 'a', '-o', 'name']],
    [one, ['get', 'pod', 'a', '-o', 'yaml']],
    [one, ['get', 'pod', 'a', '-o', 'json']],
    [one, ['get', 'pod', 'a', '-o', 'custom-columns=A:.metadata.name,B:.status']],
    [{}, ['get', 'pod', 'missing']],
    [deletable, ['delete', 'pods', '--all', '--wait=false']],
    [deletable, ['delete', 'pods', '--all', '--wait=false', '-o', 'name']],
    [review, ['auth', 'can-i', 'get', 'pods']],
    [{ '/api': (response) => void response.writeHead(500).end(ESCAPE) }, ['get', 'pods']],
    [
      {
        [PODS]: (response, query) => {
          response.setHeader('warning', '299 - "\x1b[31mred"'.replace('\x1b', '\u009b'));
          json(table)(response, query);
        },
      },
      ['get', 'pods'],
    ],
  ];
  for (const [given, args] of calls) {
    const { stdout, stderr } = await run(given, ...args);
    assert.notEqual(stdout + stderr, '', args.join(' '));
    // YAML and JSON are escaped as kubectl escapes them.
    const pattern = args.includes('yaml') || args.includes('json') ? NEVER : CONTROL;
    assert.doesNotMatch(stdout + stderr, pattern, args.join(' '));
  }
});

test('reports responses that are not JSON objects', async () => {
  const broken: readonly Answer[] = [
    (response) => void response.end(''),
    (response) => void response.end('{'),
    (response) => void response.end('null'),
    (response) => void response.end('[]'),
    (response) => void response.end('"text"'),
    (response) => void response.end('<html>'),
    (response) => void response.destroy(),
    (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    json({ kind: 'Table', rows: 5, columnDefinitions: 'x' }),
    json({ kind: 'Table', rows: [null, 5, {}], columnDefinitions: [null] }),
    json({ items: [null, 5] }),
  ];
  for (const [index, answer] of broken.entries())
    for (const [path, args] of [
      [PODS, ['get', 'pods']],
      [PODS, ['get', 'pods', '-o', 'yaml']],
      [`${PODS}/a`, ['describe', 'pod', 'a']],
      ['/api', ['get', 'pods']],
      ['/api/v1', ['get', 'pods']],
    ] as const) {
      const { stderr } = await run({ [path]: answer }, ...args);
      assert.doesNotMatch(
        stderr,
        /is not a function|not iterable|Cannot read|TypeError|^\s+at /m,
        `${index} ${args.join(' ')}`,
      );
    }
});

test('reads long lists in pages of 500 objects', async () => {
  const PAGES = 20;
  const page: Answer = (response, query) => {
    const number = Number(query.get('continue') ?? 0);
    const rows = Array.from({ length: 500 }, (_, index) => ({ cells: [`pod-${number}-${index}`] }));
    const next = number + 1 < PAGES ? String(number + 1) : '';
    json({ kind: 'Table', metadata: { continue: next }, columnDefinitions: [{ name: 'Name' }], rows })(response, query);
  };
  const { stdout, code } = await run({ [PODS]: page }, 'get', 'pods');
  assert.equal(code, 0);
  assert.equal(stdout.trim().split('\n').length, PAGES * 500 + 1);
  const lists = requests.filter((path) => path.startsWith(PODS));
  assert.equal(lists.length, PAGES);
  for (const path of lists) assert.match(path, /limit=500/);
});

test('stops at a list whose pages repeat endlessly', async () => {
  const endless = json({
    kind: 'Table',
    metadata: { continue: 'same' },
    columnDefinitions: [],
    rows: [{ cells: ['x'] }],
  });
  for (const format of [[], ['-o', 'json']]) {
    const { code, stderr } = await run({ [PODS]: endless }, 'get', 'pods', ...format);
    assert.equal(code, 1);
    assert.match(stderr, /returned the same part of the list twice/);
  }
});

test('stops at a response that never ends', { timeout: 60_000 }, async () => {
  let open = true;
  const endless: Answer = (response) => {
    const chunk = Buffer.alloc(1 << 20, 0x20);
    const more = (): void => {
      while (open && response.write(chunk));
    };
    response.on('drain', more).once('close', () => {
      open = false;
    });
    more();
  };
  const { code, stderr } = await run({ [PODS]: endless }, 'get', 'pods');
  assert.equal(code, 1);
  assert.match(stderr, /the response is larger than 256 MiB; use a selector, a name or a smaller --chunk-size/);
});

test('ends a request without a response at --request-timeout', { timeout: 30_000 }, async () => {
  const { code, stderr } = await run({ [PODS]: () => {} }, 'get', 'pods', '--request-timeout=300ms');
  assert.equal(code, 1);
  assert.match(stderr, /no response within 300 ms/);
});

test('prints no token at any verbosity', async () => {
  const { stdout, stderr } = await run({}, 'get', 'pods', '--token', 'very-secret', '-v', '10');
  assert.doesNotMatch(stdout + stderr, /very-secret/);
});
