import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { installHost } from '../../../src/host/run/prepare-files.ts';
import { etcdFiles, masterFiles } from '../../../src/pki/index.ts';
import { freePort } from '../../support/ports.ts';
import { killAll, startHosts } from '../stores.ts';

let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'hyperedge-peer-port-'));
});
after(() => rm(root, { recursive: true, force: true }));
afterEach(killAll);

const ADDRESS = '127.79.0.1';

/** Status of a request for the member list; undefined if the connection ended without a response. */
function askMembers(port: number, tls: { ca: string; cert?: string; key?: string }): Promise<number | undefined> {
  return new Promise((resolve) => {
    const session = connect(`https://${ADDRESS}:${port}`, { ...tls, minVersion: 'TLSv1.3' });
    const end = (status?: number): void => {
      session.destroy();
      resolve(status);
    };
    session.on('error', () => end());
    session.on('close', () => end());
    const headers = { 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request({ ':method': 'POST', ':path': '/hyperedge.Peer/Members', ...headers });
    stream.on('error', () => end());
    stream.on('response', (response) => end(response[':status']));
    stream.end(Buffer.alloc(5));
  });
}

test('the peer port rejects the certificates of store clients and nodes', { timeout: 120_000 }, async () => {
  const [client, peer] = [await freePort(), await freePort()];
  await mkdir(join(root, 'etc/origin'), { recursive: true });
  const node = `node: {name: p1, ip: ${ADDRESS}}\nports: {etcd: ${client}, etcdPeer: ${peer}}\n`;
  await writeFile(
    join(root, 'etc/origin/bootstrap.yaml'),
    `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${node}etcd: {initialCluster: {p1: 'https://${ADDRESS}:${peer}'}}\n`,
  );
  const options = { nowMs: Date.now(), cgroupDriver: 'cgroupfs', assets: undefined, log: silentLog } as const;
  await installHost(await loadSettings({ root }), options);
  await startHosts([root]);
  const [etcd, master] = [etcdFiles(root), masterFiles(root)];
  const ca = await readFile(etcd.ca, 'utf8');
  const as = async ({ cert, key }: { cert: string; key: string }): Promise<number | undefined> =>
    askMembers(peer, { ca, cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') });
  assert.equal(await as(etcd.peer), 200);
  assert.equal(await as(master.etcdClient), undefined);
  assert.equal(await as(master.kubeletClient), undefined);
  assert.equal(await askMembers(peer, { ca }), undefined);
});
