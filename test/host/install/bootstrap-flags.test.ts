import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import {
  bootstrapPath,
  bootstrapText,
  checkCluster,
  writeBootstrap,
} from '../../../src/host/install/bootstrap-flags.ts';
import { nodeFiles } from '../../../src/pki/index.ts';

const run = promisify(execFile);
const NONE = {
  config: undefined,
  roles: undefined,
  address: undefined,
  nodeName: undefined,
  hostTools: false,
  join: undefined,
};
const JOIN = {
  server: 'https://10.0.0.1:8443',
  token: 'abcdef.0123456789abcdef',
  caHash: `sha256:${'0'.repeat(64)}`,
};
let root = '';
let path = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'flags-'));
  path = bootstrapPath(root);
});
after(() => rm(root, { recursive: true }));

test('creates no bootstrap file if there are neither a file nor flags', async () => {
  assert.equal(await bootstrapText(path, NONE), undefined);
  assert.equal(await writeBootstrap(path, undefined), false);
});

test('converts flags to fields in a private file, and does not change the file in a second run', async () => {
  const flags = { ...NONE, roles: ['node'], address: '10.0.0.7', join: JOIN };
  const text = await bootstrapText(path, flags);
  assert.equal(await writeBootstrap(path, text), true);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal(
    await readFile(path, 'utf8'),
    `apiVersion: hyperedge.dev/v1
kind: Bootstrap
roles:
  - node
node:
  ip: 10.0.0.7
join:
  server: ${JOIN.server}
  token: ${JOIN.token}
  caHash: ${JOIN.caHash}
`,
  );
  assert.equal(await writeBootstrap(path, await bootstrapText(path, flags)), false);
});

test('keeps comments and other fields of an existing file', async () => {
  const present =
    '# rack 4\napiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: [ node ] # bare\nnode: {maxPods: 20}\n';
  await writeFile(path, present);
  assert.equal(await bootstrapText(path, { ...NONE, roles: ['node'] }), present);
  const text = (await bootstrapText(path, { ...NONE, nodeName: 'edge-1' })) ?? '';
  assert.match(text, /^# rack 4\n/);
  assert.match(text, /roles: \[ node \] # bare/);
  assert.match(text, /maxPods: 20/);
  assert.match(text, /name: edge-1/);
});

test('the error of an invalid flag value names the flag without the token', async () => {
  const refused = (flags: object, message: string) =>
    assert.rejects(bootstrapText(path, { ...NONE, ...flags }), { code: 'bad-flag', message });
  await refused({ roles: ['boss'] }, '--roles: must be one of master, etcd, node, not "boss"');
  await refused({ address: 'here' }, '--address: "here" is not accepted; give an IP address');
  await refused(
    { nodeName: 'Edge_1' },
    '--node-name: "Edge_1" is not accepted; use lower-case letters, digits, "-" and "."',
  );
  await refused(
    { join: { ...JOIN, token: 'secret' } },
    '--token: the value is not accepted; give a token of "hyperedge token create"',
  );
  await refused(
    { join: { ...JOIN, caHash: 'md5:1' } },
    '--ca-hash: "md5:1" is not accepted; give the hash that "hyperedge token create" printed',
  );
});

test('errors in a --config file name this file', async () => {
  const config = join(root, 'mine.yaml');
  await writeFile(config, 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nrole: [node]\n');
  await assert.rejects(bootstrapText(path, { ...NONE, config }), { message: /mine\.yaml:3: role: unknown field/ });
  await assert.rejects(bootstrapText(path, { ...NONE, config: '/none.yaml' }), { message: /^--config: cannot read/ });
});

test('rejects a host of another cluster and accepts a host of the same cluster', async () => {
  await checkCluster(root, { join: JOIN });
  const { clientCa } = nodeFiles(root);
  await mkdir(dirname(clientCa), { recursive: true });
  const key = join(root, 'key');
  const subject = ['-subj', '/CN=test', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const createCa = async (): Promise<string> => {
    await run('openssl', ['req', '-x509', ...subject, '-keyout', key, '-out', clientCa]);
    return readFile(clientCa, 'utf8');
  };
  // Hash as documented by kubeadm: openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256
  const hashOf = (pem: string): string => {
    const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
    return `sha256:${createHash('sha256').update(spki).digest('hex')}`;
  };
  const successor = await createCa();
  const current = await createCa();
  await assert.rejects(checkCluster(root, { join: JOIN }), {
    code: 'other-cluster',
    message: /run hyperedge reset first/,
  });
  await checkCluster(root, { join: { ...JOIN, caHash: hashOf(current) } });
  await assert.rejects(checkCluster(root, { join: { ...JOIN, caHash: hashOf(successor) } }), { code: 'other-cluster' });
  // The bundle of the host during a rotation of the authority.
  await writeFile(clientCa, current + successor);
  for (const caHash of [hashOf(current), hashOf(successor)]) {
    await checkCluster(root, { join: { ...JOIN, caHash } });
    await checkCluster(root, { offer: { server: JOIN.server, caHash } });
  }
  await assert.rejects(checkCluster(root, { join: JOIN }), { code: 'other-cluster' });
});
