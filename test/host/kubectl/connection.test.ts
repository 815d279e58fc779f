/** Kubeconfigs and flags that cannot be used: each error names the field and the fix. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { nodeSystem } from '../../../src/host/kubectl/node-system.ts';
import { runVerb } from '../../../src/kubectl/run.ts';
import { VERBS } from '../../../src/kubectl/verbs.ts';
import { runClient } from '../../kubectl/run-client.ts';

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-kubeconfig-'));
  process.env['KUBECACHEDIR'] = directory;
});
after(() => rm(directory, { recursive: true, force: true }));

const BASE = {
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'c',
  contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
  clusters: [{ name: 'k', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'u', user: { token: 'secret-token' } }],
};
const cluster = (fields: object): object => ({
  ...BASE,
  clusters: [{ name: 'k', cluster: { server: 'https://127.0.0.1:1', ...fields } }],
});
const user = (fields: object): object => ({ ...BASE, users: [{ name: 'u', user: fields }] });

async function error(content: unknown, ...args: string[]): Promise<string> {
  const path = join(directory, 'config');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  const { code, stderr } = await runClient(['get', 'pods', '--kubeconfig', path, ...args]);
  assert.equal(code, 1, stderr);
  assert.doesNotMatch(stderr, /secret-token|is not a function|undefined|\[object|TypeError|^\s+at /m);
  return stderr;
}

test('names the invalid field of a kubeconfig', async () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ['a: [', /error loading config file ".*config": /],
    ['just text', /must be a mapping with clusters, contexts and users/],
    [[1, 2], /must be a mapping with clusters, contexts and users/],
    [{ ...BASE, 'current-context': 5 }, /current-context must be a string/],
    [{ ...BASE, 'current-context': '' }, /current-context is empty: name a context/],
    [{ ...BASE, 'current-context': 'x' }, /contexts has no entry named "x"/],
    [{ ...BASE, contexts: 'x' }, /contexts must be a list/],
    [{ ...BASE, contexts: [null] }, /contexts\[0\] must be a mapping/],
    [{ ...BASE, clusters: { k: 1 } }, /clusters must be a list/],
    [{ ...BASE, users: [] }, /users has no entry named "u"/],
    [cluster({ server: 5 }), /clusters\[k\]\.server must be a string/],
    [cluster({ server: 'nowhere' }), /clusters\[k\]\.server is not a URL/],
    [cluster({ server: 'ftp://x' }), /clusters\[k\]\.server must begin with https:\/\//],
    [
      cluster({ 'proxy-url': 'ftp://p' }),
      /proxy-url: "ftp:\/\/p": unsupported scheme "ftp", must be http, https, or socks5/,
    ],
    [cluster({ 'certificate-authority-data': 'eA==' }), /certificate-authority-data is not base64 of PEM/],
    [cluster({ 'certificate-authority': '/nonexistent/ca' }), /unable to read \/nonexistent\/ca/],
    [cluster({ 'certificate-authority': 'config' }), /certificate-authority: is not PEM/],
    [user({ exec: { command: 'x' } }), /apiVersion must be specified for u to use exec authentication plugin/],
    [user({ token: 5 }), /users\[u\]\.token must be a string/],
    [user({ token: 'a\nHost: x' }), /token: contains spaces, line breaks/],
    [user({ tokenFile: 'absent' }), /unable to read .*absent/],
    [
      user({ 'client-certificate': 'config' }),
      /users\[u\]\.client-key is missing: the client certificate and its key must be given together/,
    ],
    [user({ token: 't', 'as-groups': ['g'] }), /users\[u\]\.as is required with as-groups/],
    [user({ token: 't', as: 'x', 'as-groups': 'g' }), /users\[u\]\.as-groups must be a list of strings/],
  ];
  for (const [content, message] of cases) assert.match(await error(content), message, JSON.stringify(content));
});

test('names the invalid flag', async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--server', 'ftp://x'], /--server: "ftp:\/\/x" is not a URL; use https:\/\/HOST:PORT/],
    [['--server', 'https://u:p@x'], /--server: must not contain a user name/],
    [['--context', 'x'], /contexts has no entry named "x"/],
    [['--cluster', 'x'], /clusters has no entry named "x"/],
    [['--user', 'x'], /users has no entry named "x"/],
    [['--token', 'a b'], /token: contains spaces/],
    [['--client-certificate', '/nonexistent'], /unable to read \/nonexistent/],
    [['--request-timeout', 'soon'], /soon/],
  ];
  for (const [args, message] of cases) assert.match(await error(BASE, ...args), message, args.join(' '));
});

test('rejects a kubeconfig that is larger than 16 MiB, without reading it completely', {
  timeout: 60_000,
}, async () => {
  const { code, stderr } = await runClient(['get', 'pods', '--kubeconfig', '/dev/zero']);
  assert.equal(code, 1);
  assert.match(stderr, /\/dev\/zero": is larger than 16 MiB/);
});

test('reports an unreachable server as kubectl does', async () => {
  assert.match(
    await error(BASE),
    /^The connection to the server 127\.0\.0\.1:1 was refused - did you specify the right host or port\?$/m,
  );
});

test('acts as the impersonated user of the kubeconfig', async () => {
  const path = join(directory, 'as');
  await writeFile(path, JSON.stringify(user({ token: 't', as: 'jane', 'as-groups': ['ops'] })));
  const system = nodeSystem({ variable: path, hostFile: '/nonexistent' });
  const connected: unknown[] = [];
  await runVerb({
    verbs: VERBS,
    program: 'kubectl',
    argv: ['get', 'pods'],
    signal: new AbortController().signal,
    system: {
      ...system,
      connect: async (options) => {
        const connection = await system.connect(options);
        connected.push(connection.headers);
        return connection;
      },
    },
    io: {
      out: () => {},
      err: () => {},
      drained: () => undefined,
      readAll: async () => '',
      stdin: (async function* () {})(),
      isInputTerminal: false,
      isOutputTerminal: false,
      size: () => undefined,
      onResize: () => () => {},
      raw: () => () => {},
    },
  });
  assert.deepEqual(connected, [{ 'impersonate-user': 'jane', 'impersonate-group': ['ops'] }]);
});
