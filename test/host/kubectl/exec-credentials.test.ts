/** The client runs the credential plug-in of the kubeconfig, as kubectl does. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { parseKubeconfig } from '../../../src/client/kubeconfig.ts';
import { execCredentials } from '../../../src/host/kubectl/exec-credentials.ts';
import type { Outcome } from '../../kubectl/calls.ts';
import { runClient } from '../../kubectl/run-client.ts';

const V1 = 'client.authentication.k8s.io/v1';
const CREDENTIAL = { kind: 'ExecCredential', apiVersion: V1 };

let server: Server;
let directory: string;
let authorizations: (string | undefined)[] = [];
let refused: string | undefined;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'he-exec-'));
  server = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    response.setHeader('content-type', 'application/json');
    if (request.headers.authorization === refused) {
      const status = { kind: 'Status', status: 'Failure', reason: 'Unauthorized', code: 401 };
      return response.writeHead(401).end(JSON.stringify(status));
    }
    return response.end('{"gitVersion":"v1.36.0"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(() => {
  authorizations = [];
  refused = undefined;
});

/** A plug-in that notes its calls and prints the text. */
async function plugin(name: string, script: string): Promise<string> {
  await writeFile(join(directory, name), `#!/bin/sh\necho run >> ${directory}/${name}.calls\n${script}\n`, {
    mode: 0o755,
  });
  await rm(join(directory, `${name}.calls`), { force: true });
  return `./${name}`;
}

const callsOf = async (name: string): Promise<number> =>
  (await readFile(join(directory, `${name}.calls`), 'utf8').catch(() => '')).split('\n').length - 1;

const printed = (status: object, more: object = CREDENTIAL): string =>
  `cat <<'END'\n${JSON.stringify({ ...more, status })}\nEND`;

function document(exec: object, cluster: object = {}): object {
  const { port } = server.address() as AddressInfo;
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: `http://127.0.0.1:${port}`, ...cluster } }],
    users: [{ name: 'u', user: { exec: { apiVersion: V1, interactiveMode: 'Never', ...exec } } }],
  };
}

async function call(exec: object, args: readonly string[] = [], cluster: object = {}): Promise<Outcome> {
  const file = join(directory, 'kubeconfig');
  await writeFile(file, JSON.stringify(document(exec, cluster)));
  return runClient(['--kubeconfig', file, 'get', '--raw', '/version', ...args]);
}

test('sends the token of an exec plug-in, which receives arguments, environment and cluster information', async () => {
  const command = await plugin(
    'echo',
    `printf '%s\\n' "$1 $2 $GREETING" "$KUBERNETES_EXEC_INFO" > ${directory}/seen\n${printed({ token: 'first' })}`,
  );
  const exec = { command, args: ['a', 'b c'], env: [{ name: 'GREETING', value: 'hi' }], provideClusterInfo: true };
  const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }];
  const { code, stdout, stderr } = await call(exec, [], { extensions });
  assert.deepEqual([code, stdout, stderr], [0, '{"gitVersion":"v1.36.0"}', '']);
  assert.deepEqual(authorizations, ['Bearer first']);
  const [line, info = ''] = (await readFile(join(directory, 'seen'), 'utf8')).split('\n');
  assert.equal(line, 'a b c hi');
  const { port } = server.address() as AddressInfo;
  const cluster = { server: `http://127.0.0.1:${port}`, config: { audience: 'x' } };
  assert.deepEqual(JSON.parse(info), { ...CREDENTIAL, spec: { cluster, interactive: false } });
});

test('runs no exec plug-in if a token is given', async () => {
  const command = await plugin('unused', printed({ token: 'plugin' }));
  assert.equal((await call({ command }, ['--token', 'given'])).code, 0);
  assert.deepEqual(authorizations, ['Bearer given']);
  assert.equal(await callsOf('unused'), 0);
});

test('names the error of an exec plug-in or of its output', async () => {
  const prefix = 'Unable to connect to the server: getting credentials: ';
  const missing = await call({ command: 'he-no-such-plugin', installHint: 'apt install it' });
  assert.deepEqual(missing.code, 1);
  assert.equal(
    missing.stderr,
    `${prefix}exec: executable he-no-such-plugin not found

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins

apt install it
`,
  );
  const scripts: readonly (readonly [string, RegExp])[] = [
    ['exit 7', /exec: executable .*\/bad failed with exit code 7/],
    ['kill -9 $$', /failed with exit code -1/],
    ['echo text', /decoding stdout: couldn't get version\/kind; json parse error/],
    ['echo null', /decoding stdout/],
    [printed({ token: 't' }, { kind: 'Secret', apiVersion: V1 }), /decoding stdout: kind is "Secret"/],
    [
      printed({ token: 't' }, { kind: 'ExecCredential', apiVersion: `${V1}beta1` }),
      /configured to use API version client\.authentication\.k8s\.io\/v1, plugin returned version .*v1beta1/,
    ],
    [`echo '${JSON.stringify(CREDENTIAL)}'`, /exec plugin didn't return a status field/],
    [printed({}), /exec plugin didn't return a token or cert\/key pair/],
    [printed({ clientKeyData: 'k' }), /exec plugin returned only certificate or key, not both/],
    [printed({ clientKeyData: 'k', clientCertificateData: 'c' }), /failed parsing client key\/certificate/],
    [printed({ token: 'a\nx: y' }), /token with spaces or line breaks/],
    [printed({ token: 5 }), /status\.token must be a string/],
    [printed({ token: 't', expirationTimestamp: 'soon' }), /expirationTimestamp soon is not a time/],
    ['head -c 6000000 /dev/zero', /printed more than 4 MiB/],
  ];
  for (const [script, pattern] of scripts) {
    const { code, stderr } = await call({ command: await plugin('bad', script) });
    assert.equal(code, 1, script);
    assert.ok(stderr.startsWith(prefix), stderr);
    assert.match(stderr, pattern);
  }
  const always = await call({ command: await plugin('never', printed({ token: 't' })), interactiveMode: 'Always' });
  assert.equal(
    always.stderr,
    `${prefix}exec plugin cannot support interactive mode: standard input is not a terminal\n`,
  );
  assert.equal(await callsOf('never'), 0);
  assert.deepEqual(authorizations, []);
});

test('validates the fields of the kubeconfig with the messages of client-go', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ command: '' }, 'command must be specified for u to use exec authentication plugin'],
    [{ command: 'a', apiVersion: '' }, 'apiVersion must be specified for u to use exec authentication plugin'],
    [
      { command: 'a', interactiveMode: '' },
      'interactiveMode must be specified for u to use exec authentication plugin',
    ],
    [{ command: 'a', interactiveMode: 'Maybe' }, 'invalid interactiveMode for u: "Maybe"'],
    [
      { command: 'a', env: [{ value: 'x' }] },
      'env variable name must be specified for u to use exec authentication plugin',
    ],
    [{ command: 'a', apiVersion: `${V1}alpha1` }, `exec plugin: invalid apiVersion "${V1}alpha1"`],
    [{ command: 'a', args: [1] }, 'exec.args of u must be a list of strings'],
  ];
  for (const [exec, message] of cases)
    assert.throws(() => parseKubeconfig(document(exec), { plugins: true }), { message }, JSON.stringify(exec));
  const beta = parseKubeconfig(document({ command: 'a', apiVersion: `${V1}beta1`, interactiveMode: undefined }), {
    plugins: true,
  });
  assert.equal(beta.exec?.interactiveMode, 'IfAvailable');
  assert.throws(() => parseKubeconfig(document({ command: 'a' })), /users\[u\]\.exec is not supported/);
});

test('caches exec credentials until they expire or are refused', async () => {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const status = { token: 'kept', expirationTimestamp: '2026-01-01T01:00:00Z' };
  await plugin('expiring', printed(status));
  const config = parseKubeconfig(document({ command: join(directory, 'expiring') }), { plugins: true }).exec;
  assert.ok(config);
  const cluster = { server: 'http://x', tlsServerName: undefined, insecure: false, ca: undefined, proxyUrl: undefined };
  const source = execCredentials(config, cluster, { ca: 'own' }, { isInputTerminal: false, now: () => now });
  const [one, two] = await Promise.all([source.current(), source.current()]);
  assert.deepEqual(one, { ca: 'own', token: 'kept' });
  assert.equal(one, two);
  now += 3_600_000;
  await source.current();
  assert.equal(await callsOf('expiring'), 1);
  now += 1;
  const later = await source.current();
  assert.equal(await callsOf('expiring'), 2);
  source.refuse(one);
  await source.current();
  source.refuse(later);
  now = 0;
  await source.current();
  assert.equal(await callsOf('expiring'), 3);
});

test('ends with the error of the server if the server refuses the credentials', async () => {
  refused = 'Bearer stale';
  const command = await plugin('stale', printed({ token: 'stale' }));
  const { code, stderr } = await call({ command });
  assert.deepEqual([code, stderr], [1, 'error: You must be logged in to the server (Unauthorized)\n']);
});
