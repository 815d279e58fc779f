/**
 * Uninstall and reset beside a running appliance: with another root they must not affect it, with its own root they
 * remove everything.
 */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually, projectRoot } from './harness.ts';

let appliance: Appliance;
let other: string;

before(
  async () => {
    other = await mkdtemp(join(tmpdir(), 'he-other-'));
    appliance = await Appliance.create();
    await appliance.start();
  },
  { timeout: 120_000 },
);
after(async () => {
  await appliance.stop();
  await rm(other, { recursive: true, force: true });
});

/** Addresses, routes, links and tables of the host. */
async function network(): Promise<Record<'addresses' | 'routes' | 'links' | 'tables', string[]>> {
  const lines = async (file: string, ...args: string[]): Promise<string[]> =>
    (await appliance.inside(file, args)).stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .sort();
  const [routes, routes6, links] = await Promise.all([
    lines('ip', 'route'),
    lines('ip', '-6', 'route', 'show', 'proto', 'static'),
    lines('ip', '-brief', 'link'),
  ]);
  return {
    addresses: (await lines('ip', '-oneline', 'address', 'show', 'scope', 'global')).map((line) => line.slice(0, 60)),
    routes: [...routes, ...routes6],
    links: links.map((line) => line.split(/[ @]/)[0] ?? ''),
    tables: await lines('nft', 'list', 'tables'),
  };
}

test('refuses uninstall and reset for a root without an installation, and changes nothing', {
  timeout: 60_000,
}, async () => {
  const before = await eventually('the route of services', 30_000, async () => {
    const now = await network();
    return now.tables.length > 0 && now.routes.some((route) => route.startsWith('172.30.0.0/16')) ? now : undefined;
  });
  for (const [command, root] of [
    ['uninstall', '/never/existed'],
    ['reset', '/never/existed'],
    ['uninstall', other],
  ] as const) {
    const ran = await appliance.hyperedge([command, '--root', root]);
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(ran.stderr, new RegExp(`^hyperedge: ${command}: ${root} contains no installation; give --root`));
  }
  assert.deepEqual(await network(), before);
});

test('does not affect the running appliance when another installation is uninstalled', {
  timeout: 90_000,
}, async () => {
  const unit = join(other, 'etc/systemd/system/hyperedge.service');
  await mkdir(dirname(unit), { recursive: true });
  await cp(join(projectRoot, 'systemd/hyperedge.service'), unit);
  const before = await network();
  const ran = await appliance.hyperedge(['uninstall', '--purge', '--root', other]);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.deepEqual(await network(), before);
  await appliance.must(['get', 'nodes']);
});

test('removes links, routes and tables when its own root is uninstalled', { timeout: 120_000 }, async () => {
  await appliance.inside('nft', ['add', 'table', 'ip', 'of-the-administrator']);
  const pods = (await readdir(join(appliance.root, 'var/log/pods'))).map((name) => name.split('_').at(-1) ?? '');
  assert.ok(pods.length >= 3);
  const ran = await appliance.hyperedge(['uninstall', '--purge', '--root', appliance.root]);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  const { stdout: cgroups } = await appliance.inside('find', ['/sys/fs/cgroup', '-type', 'd', '-name', '*pod*']);
  const left = cgroups.split('\n').filter((path) => pods.some((uid) => path.replaceAll('_', '-').includes(uid)));
  assert.deepEqual(left, []);
  const { links, routes, tables } = await network();
  assert.deepEqual(
    { links, routes: routes.filter((route) => !route.includes('dev lo')), tables },
    { links: ['lo'], routes: [], tables: ['table ip of-the-administrator'] },
  );
});
