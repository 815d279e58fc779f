/** Hosts whose bootstrap files list each other's stores: the generated files, and stores that run with them. */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { loadSettings } from '../../../src/host/config/settings.ts';
import { installHost } from '../../../src/host/run/prepare-files.ts';
import { freePort } from '../../support/ports.ts';
import { done, hyperedge, killAll, startHosts } from '../stores.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-hosts-'));
});
after(() => rm(directory, { recursive: true, force: true }));
afterEach(killAll);

const options = { nowMs: Date.now(), cgroupDriver: 'cgroupfs', assets: undefined, log: silentLog };

test('three hosts form one store from their bootstrap files and a shared CA', { timeout: 120_000 }, async () => {
  const names = ['h1', 'h2', 'h3'];
  const peer = await freePort();
  // Each member also listens on 127.0.0.1, which all of them share here.
  const clients = [await freePort(), await freePort(), await freePort()];
  const address = (i: number): string => `127.77.0.${i + 1}`;
  const cluster = names.map((name, i) => `    ${name}: https://${address(i)}:${peer}\n`).join('');
  const roots = names.map((name) => join(directory, name));
  const [first = ''] = roots;
  for (const [i, root] of roots.entries()) {
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(
      join(root, 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {name: ${names[i]}, ip: ${address(i)}}\nports: {etcd: ${clients[i]}, etcdPeer: ${peer}}\netcd:\n  initialCluster:\n${cluster}`,
    );
    if (i > 0) await cp(join(first, 'etc/etcd/ca'), join(root, 'etc/etcd/ca'), { recursive: true });
    await installHost(await loadSettings({ root }), options);
  }
  await startHosts(roots);
  const expected = names.map((name, i) => `${name} ok https://${address(i)}:${clients[i]}`);
  let shown: string[] = [];
  // Members publish their names some time after the start.
  for (let tries = 0; tries < 50 && shown.join() !== expected.join(); tries += 1) {
    const { out } = await hyperedge('members', '-o', 'json', '--root', first);
    const members: Array<{ name: string; state: string; clientUrls: string[] }> = JSON.parse(out);
    shown = members.map(({ name, state, clientUrls }) => `${name} ${state} ${clientUrls.join()}`).sort();
  }
  assert.deepEqual(shown, expected);
  assert.match(await done('snapshot', 'save', '--root', first), /var\/lib\/origin\/snapshots\/etcd-1-.*: revision 1,/);
});

test('grows from one host to two hosts, and replaces the second host', { timeout: 120_000 }, async () => {
  const peer = await freePort();
  const clients = [await freePort(), await freePort()];
  const roots = [join(directory, 'g1'), join(directory, 'g2')] as const;
  const [first, second] = roots;
  const url = (i: number): string => `https://127.78.0.${i + 1}:${peer}`;
  const prepare = async (i: 0 | 1, etcd: string): Promise<void> => {
    const root = roots[i];
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    const node = `node: {name: g${i + 1}, ip: 127.78.0.${i + 1}}\nports: {etcd: ${clients[i]}, etcdPeer: ${peer}}\n`;
    const file = join(root, 'etc/origin/bootstrap.yaml');
    await writeFile(file, `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${node}${etcd}`);
    await installHost(await loadSettings({ root }), options);
  };
  await prepare(0, '');
  const [alone] = await startHosts([first]);
  await done('snapshot', 'save', '--root', first);
  await alone?.stop();
  await prepare(0, `etcd: {initialCluster: {g1: '${url(0)}'}}\n`);
  await startHosts([first]);
  await cp(join(first, 'etc/etcd/ca'), join(second, 'etc/etcd/ca'), { recursive: true });
  const both = `{g1: '${url(0)}', g2: '${url(1)}'}`;
  await prepare(1, `etcd: {initialClusterState: existing, initialCluster: ${both}}\n`);
  const data = join(second, 'var/lib/origin/openshift.local.etcd');
  for (const round of ['grown', 'replaced']) {
    const learner = round === 'replaced' ? ['--learner'] : [];
    await done('members', 'add', 'g2', url(1), '--root', first, ...learner);
    const [joined] = await startHosts([second]);
    const shown = await untilShown(first, ['g1 ok', 'g2 ok']);
    assert.deepEqual(shown, ['g1 ok', 'g2 ok'], round);
    if (round === 'replaced') {
      // The promotion succeeds as soon as the learner has caught up.
      for (let tries = 0; tries < 50; tries += 1) {
        if ((await hyperedge('members', 'promote', 'g2', '--root', first)).code === 0) break;
      }
      assert.match(await done('members', '--root', second), /g2 +\w+ +voter/);
    } else {
      assert.match(await done('members', 'remove', 'g2', '--root', first), /member g2 .* removed/);
      await joined?.exited;
      await rm(data, { recursive: true });
    }
  }
});

async function untilShown(root: string, expected: readonly string[]): Promise<string[]> {
  let shown: string[] = [];
  for (let tries = 0; tries < 50 && shown.join() !== expected.join(); tries += 1) {
    const { out } = await hyperedge('members', '-o', 'json', '--root', root);
    const members: Array<{ name: string; state: string }> = out === '' ? [] : JSON.parse(out);
    shown = members.map(({ name, state }) => `${name} ${state}`).sort();
  }
  return shown;
}

test('rejects a host that is missing from its own list of members', async () => {
  const root = join(directory, 'other');
  await mkdir(join(root, 'etc/origin'), { recursive: true });
  const file = join(root, 'etc/origin/bootstrap.yaml');
  const begin = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {name: h9}\netcd:\n  initialCluster:\n';
  await writeFile(file, `${begin}    h1: https://10.0.0.1:2380\n`);
  await assert.rejects(loadSettings({ root }), {
    message: /etcd.initialCluster does not name this node; add h9: https:/,
  });
  await writeFile(file, `${begin}    h9: http://10.0.0.1:2380\n`);
  await assert.rejects(loadSettings({ root }), { message: /bootstrap.yaml:6: .*give its peer URL such as https:/ });
  const { code, err } = await hyperedge('members', '--root', root);
  assert.equal(code, 1);
  assert.match(err, /so this host has no store; give --endpoints/);
});
