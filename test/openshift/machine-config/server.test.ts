/** Machine config server on a real API server, which reviews tokens. Requests use its real listener. */
import assert from 'node:assert/strict';
import { request } from 'node:https';
import { after, before, test } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { fetchConfig } from '../../../src/host/install/served-config.ts';
import { listenForConfigs } from '../../../src/openshift/machine-config/io/server-listener/listener.ts';
import type { ConfigListener } from '../../../src/openshift/machine-config/server/port.ts';
import {
  createMachineConfigServer,
  type MachineConfigServer,
} from '../../../src/openshift/machine-config/server/server.ts';
import { acceptedVersion } from '../../../src/openshift/machine-config/server/versions.ts';
import { issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';
import { type ControlPlane, startControlPlane, eventually as within } from '../../controllers/harness.ts';

/** Longer timeout, because many objects are created at start and the machine may be busy. */
const eventually = <T>(check: () => Promise<T | undefined | false>, what: string): Promise<T> =>
  within(check, what, 30_000);

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: string;
}

let api: TestServer;
let plane: ControlPlane;
let server: MachineConfigServer;
let listener: ConfigListener;
let token: string;
let admits = true;

before(async () => {
  api = await startServer({ config: { bootstrapTokens: true } });
  plane = await startControlPlane({ api });
  const client = await plane.clientAs('system:node:m1', 'system:nodes');
  server = createMachineConfigServer({ client, podNetworks: ['10.128.0.0/14'], log: silentLog });
  const { certPem: cert, keyPem: key } = await issue(plane.api.ca, {
    subject: { commonName: 'm1' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: [] },
    validity: lifetimeFrom(Date.now(), 1),
  });
  listener = await listenForConfigs({
    address: '127.0.0.1',
    port: 0,
    tls: { cert, key },
    admits: () => admits,
    handle: server.handle,
  });
  token = await tokenOf('openshift-infra', 'node-bootstrapper');
  await plane.of(resources.machineConfigs).create({
    metadata: { name: '50-motd', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: {
      config: {
        ignition: { version: '3.2.0' },
        storage: { files: [{ path: '/etc/motd', mode: 0o600, contents: { source: 'data:,hello' } }] },
      },
      kernelArguments: ['quiet'],
    },
  });
  await eventually(async () => {
    const pool = await plane.of(resources.machineConfigPools).get('worker');
    return pool.spec?.configuration?.source?.some(({ name }) => name === '50-motd');
  }, 'a rendered pool');
});
after(async () => {
  await listener.close();
  await plane.stop();
  await api.stop();
});

async function tokenOf(namespace: string, name: string): Promise<string> {
  const metadata = { name: namespace };
  await plane
    .of(resources.namespaces)
    .create({ metadata })
    .catch(() => {});
  await plane
    .of(resources.serviceAccounts)
    .create({ metadata: { name, namespace } })
    .catch(() => {});
  const made = await plane
    .of(resources.serviceAccounts)
    .createSubresource<{ status: { token: string } }>(name, namespace, 'token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    });
  return made.status.token;
}

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { port } = listener;
    request({ host: '127.0.0.1', port, path, method, headers, rejectUnauthorized: false, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'],
          body: Buffer.concat(chunks).toString(),
        }),
      );
    })
      .on('error', reject)
      .end();
  });

const bearer = (value: string): Record<string, string> => ({ authorization: `Bearer ${value}` });
const ignition = (version: string): Record<string, string> => ({
  accept: `application/vnd.coreos.ignition+json;version=${version}, */*;q=0.1`,
});

test('serves the config of a pool, with annotations for the new node, to a client with a join token', async () => {
  const { status, type, body } = await ask('/config/worker', { ...bearer(token), ...ignition('3.2.0') });
  assert.equal(status, 200, body);
  assert.equal(type, 'application/json');
  const config = JSON.parse(body);
  assert.equal(config.ignition.version, '3.2.0');
  const contents = new Map<string, string>(
    config.storage.files.map((file: { path: string; contents: { source: string } }) => [
      file.path,
      decodeURIComponent(file.contents.source.slice('data:,'.length)),
    ]),
  );
  assert.equal(contents.get('/etc/motd'), 'hello');
  const annotations = JSON.parse(contents.get('/etc/machine-config-daemon/node-annotations.json') ?? '');
  assert.match(annotations['machineconfiguration.openshift.io/currentConfig'], /^rendered-worker-[0-9a-f]{32}$/);
  const rest = JSON.parse(contents.get('/etc/ignition-machine-config-encapsulated.json') ?? '');
  assert.deepEqual(rest.spec.kernelArguments, ['quiet']);
  assert.deepEqual(rest.spec.config, { ignition: { version: '3.2.0' } });
});

test('converts the config to the Ignition version that the client accepts, as upstream does', async () => {
  const old = JSON.parse((await ask('/config/worker', bearer(token))).body);
  assert.equal(old.ignition.version, '2.2.0');
  assert.equal(old.storage.files[0].filesystem, 'root');
  const newer = await ask('/config/worker', { ...bearer(token), ...ignition('3.1.0') });
  assert.equal(JSON.parse(newer.body).ignition.version, '3.1.0');
  assert.equal((await ask('/config/worker', { ...bearer(token), ...ignition('4.0.0') })).status, 400);
  assert.equal(acceptedVersion('application/vnd.coreos.ignition+json; version=2.4.0, */*; q=0.1'), '2.2.0');
  assert.equal(
    acceptedVersion(
      'application/vnd.coreos.ignition+json;version=1;q=1, application/vnd.coreos.ignition+json;version=3.4.0;q=0.5',
    ),
    '3.3.0',
  );
  const kernel = JSON.parse((await ask('/config/worker', { ...bearer(token), ...ignition('3.3.0') })).body);
  assert.deepEqual([kernel.ignition.version, kernel.kernelArguments], ['3.3.0', { shouldExist: ['quiet'] }]);
  const without = JSON.parse((await ask('/config/worker', { ...bearer(token), ...ignition('3.2.0') })).body);
  assert.equal(without.kernelArguments, undefined);
});

test('the machine config server rejects a missing, wrong or unauthorized token and an unknown pool', async () => {
  assert.equal((await ask('/config/worker')).status, 401);
  assert.equal((await ask('/config/worker', bearer('nonsense'))).status, 401);
  assert.equal((await ask('/config/worker', bearer(await tokenOf('default', 'other')))).status, 403);
  assert.equal((await ask('/config/nope', bearer(token))).status, 404);
  assert.equal((await ask('/config/..%2fworker', bearer(token))).status, 404);
  assert.equal((await ask('/', bearer(token))).status, 404);
  assert.equal((await ask('/config/worker', bearer(token), 'POST')).status, 405);
});

test('the machine config server serves /healthz without a token, and rejects connections from pods', async () => {
  const health = await ask('/healthz');
  assert.deepEqual([health.status, health.body], [200, '']);
  assert.equal(server.admits('10.129.0.7'), false);
  assert.equal(server.admits('::ffff:10.129.0.7'), false);
  assert.equal(server.admits('192.0.2.1'), true);
  admits = false;
  await assert.rejects(ask('/healthz'));
  admits = true;
});

test('an installation fetches its config from the server, and a rejection names the flag and the fix', async () => {
  const url = (pool: string): URL => new URL(`https://localhost:${listener.port}/config/${pool}`);
  const config = JSON.parse(await fetchConfig(url('worker'), token, plane.api.ca.certPem));
  assert.equal(config.ignition.version, '3.2.0');
  await assert.rejects(
    fetchConfig(url('worker'), 'nonsense', plane.api.ca.certPem),
    /--from-mcs: https:.*: the token is not valid; run "hyperedge token create"/,
  );
  await assert.rejects(fetchConfig(url('none'), token, plane.api.ca.certPem), /there is no such pool/);
});

test('accepts a bootstrap token as a join token, but not a revoked one', async () => {
  await plane.of(resources.secrets).create({
    metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': 'abcdef',
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
    },
  });
  await eventually(
    async () => (await ask('/config/worker', bearer('abcdef.0123456789abcdef'))).status === 200,
    'the configuration for a bootstrap token',
  );
  await plane.of(resources.secrets).delete('bootstrap-token-abcdef', 'kube-system');
  await eventually(
    async () => (await ask('/config/worker', bearer('abcdef.0123456789abcdef'))).status === 401,
    'the refusal of a revoked token',
  );
});
