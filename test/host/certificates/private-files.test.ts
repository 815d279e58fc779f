import assert from 'node:assert/strict';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { readRemoteEndpoint } from '../../../src/host/apiserver/remote-endpoint.ts';
import { checkPrivateFiles } from '../../../src/host/certificates/private-files.ts';
import { readSecret } from '../../../src/host/config/files.ts';
import { pathsBelow } from '../../../src/host/config/paths.ts';

const PRIVATE = [
  'etc/origin/master/ca.key',
  'etc/origin/master/serviceaccounts.private.key',
  'etc/origin/master/named-certificate.key',
  'etc/origin/master/admin.kubeconfig',
  'etc/origin/master/encryption-config.yaml',
  'etc/origin/node/node.kubeconfig',
  'etc/origin/node/gossip-keyring.json',
  'etc/origin/node/certificates/kubelet-server-current.pem',
  'etc/etcd/peer.key',
  'etc/etcd/ca/ca.key',
];
const PUBLIC = ['etc/origin/master/ca.crt', 'etc/origin/master/master.env', 'etc/etcd/ca.crt'];

async function inRoot(work: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'he-private-'));
  try {
    for (const [names, mode] of [
      [PRIVATE, 0o600],
      [PUBLIC, 0o644],
    ] as const) {
      for (const name of names) {
        await mkdir(dirname(join(root, name)), { recursive: true });
        await writeFile(join(root, name), 'content', { mode });
      }
    }
    await work(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test('checks every private file of a host and ignores public files', () =>
  inRoot(async (root) => {
    const check = (): Promise<void> => checkPrivateFiles({ root, paths: pathsBelow(root) });
    await check();
    const publicKey = join(root, 'etc/origin/master/serviceaccounts.public.key');
    await writeFile(publicKey, '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n', { mode: 0o644 });
    await check();
    await writeFile(publicKey, '-----BEGIN PUBLIC KEY-----\n-----BEGIN PRIVATE KEY-----\n');
    await assert.rejects(check(), /public\.key: private material/);
    await rm(publicKey);
    for (const name of PRIVATE) {
      const path = join(root, name);
      for (const mode of [0o604, 0o640, 0o620]) {
        await chmod(path, mode);
        await assert.rejects(check(), (error: Error & { code?: string }) => {
          assert.equal(error.code, 'bad-config');
          assert.ok(error.message.endsWith(`run chmod 0600 ${path}`), error.message);
          return true;
        });
      }
      await chmod(path, 0o600);
    }
    await check();
  }));

test('checks that other users cannot read store directories or replace configuration files', () =>
  inRoot(async (root) => {
    const paths = pathsBelow(root);
    for (const directory of [paths.etcdData, paths.snapshots]) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await chmod(directory, 0o755);
      await assert.rejects(checkPrivateFiles({ root, paths }), { message: new RegExp(`run chmod 0700 ${directory}$`) });
      await chmod(directory, 0o700);
    }
    await chmod(join(root, 'etc/origin/master'), 0o775);
    await assert.rejects(checkPrivateFiles({ root, paths }), { message: /run chmod go-w .*origin\/master$/ });
    await chmod(join(root, 'etc/origin/master'), 0o755);
    await checkPrivateFiles({ root, paths });
  }));

test('reports all private files that other users can access at once', () =>
  inRoot(async (root) => {
    for (const name of PRIVATE) await chmod(join(root, name), 0o644);
    await assert.rejects(checkPrivateFiles({ root, paths: pathsBelow(root) }), (error: Error) => {
      for (const name of PRIVATE) assert.ok(error.message.includes(`chmod 0600 ${join(root, name)}`));
      return true;
    });
  }));

test('rejects a private file of another user', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () =>
  inRoot(async (root) => {
    const path = join(root, 'etc/etcd/peer.key');
    await chown(path, 1234, 0);
    await assert.rejects(checkPrivateFiles({ root, paths: pathsBelow(root) }), {
      message: `${path}: private material that belongs to uid 1234; run chown 0 ${path}`,
    });
  }),
);

test('reads private files that other users can access with a warning if they are tolerated', () =>
  inRoot(async (root) => {
    const path = join(root, 'etc/etcd/peer.key');
    await chmod(path, 0o640);
    await assert.rejects(readSecret(path, '--key'), {
      message: /^--key: .*peer\.key: .*its group can read; run chmod 0600/,
    });
    const warnings: string[] = [];
    assert.equal(await readSecret(path, '--key', (problem) => warnings.push(problem)), 'content');
    assert.match(warnings[0] ?? '', /its group can read; run chmod 0600/);
  }));

test('treats a webhook kubeconfig with a token as private, and without a token as public', () =>
  inRoot(async (root) => {
    const path = join(root, 'webhook.kubeconfig');
    const kubeconfig = (user: object): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 's', user: 'u' } }],
        clusters: [{ name: 's', cluster: { server: 'https://webhook.test' } }],
        users: [{ name: 'u', user }],
      });
    await writeFile(path, kubeconfig({}), { mode: 0o644 });
    assert.equal((await readRemoteEndpoint(path, 'a flag')).url, 'https://webhook.test');
    await writeFile(path, kubeconfig({ token: 'secret' }));
    await assert.rejects(readRemoteEndpoint(path, 'a flag'), { message: /run chmod 0600/ });
    const warnings: string[] = [];
    assert.equal((await readRemoteEndpoint(path, 'a flag', (problem) => warnings.push(problem))).token, 'secret');
    assert.equal(warnings.length, 1);
  }));
