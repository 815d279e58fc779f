/** Restoration of routes, addresses and tables that another program removes while the appliance runs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Node } from '../../src/api/generated/core/v1.ts';
import { Appliance, eventually, sleep } from './harness.ts';

let appliance: Appliance;

before(
  async () => {
    appliance = await Appliance.create();
    await appliance.start();
  },
  { timeout: 120_000 },
);
after(() => appliance.stop());

const inside = async (file: string, ...args: string[]): Promise<string> => {
  const ran = await appliance.inside(file, args);
  assert.equal(ran.code, 0, ran.stderr);
  return ran.stdout;
};
const routes = async (): Promise<string[]> =>
  (await inside('ip', 'route'))
    .trim()
    .split('\n')
    .map((each) => each.trim())
    .sort();
/** The table of the probe is excluded, because each probe recreates it. */
const tables = async (): Promise<string[]> =>
  (await inside('nft', 'list', 'tables'))
    .split('\n')
    .filter((each) => each !== '' && !each.endsWith('-probe'))
    .sort();

test('restores deleted routes, addresses and nftables tables within seconds', { timeout: 120_000 }, async () => {
  await eventually('service rules', 30_000, async () => ((await tables()).length >= 3 ? true : undefined));
  await eventually('service route', 30_000, async () =>
    (await routes()).some((route) => route.startsWith('172.30.0.0/16')) ? true : undefined,
  );
  const [expectedRoutes, expectedTables] = [await routes(), await tables()];
  const [, bridge = ''] = /^172\.30\.0\.0\/16 dev (\S+)/m.exec(await inside('ip', 'route')) ?? [];
  const dnsLink = `${bridge.slice(0, 11)}-dns`;
  const service = expectedTables.find((each) => /^table ip \S*hyperedge-[0-9a-f]{6}$/.test(each)) ?? '';
  const rules = async (): Promise<string> => inside('nft', '-t', 'list', ...service.split(' '));
  const expectedRules = (await rules()).length;
  const of = service.split(' ').slice(1);
  const serviceIps = async (): Promise<string> =>
    (await inside('nft', 'list', 'map', ...of, 'service_ips')).replaceAll(/\s/g, '');
  const expectedIps = await serviceIps();
  assert.match(expectedIps, /172\.30\.0\.1/);
  const damages: readonly (readonly [string, readonly string[]])[] = [
    ['service route', ['ip', 'route', 'del', '172.30.0.0/16']],
    ['address of the DNS service', ['ip', 'addr', 'del', '172.30.0.10/32', 'dev', dnsLink]],
    ['addresses of the bridge', ['ip', 'addr', 'flush', 'dev', bridge]],
    ['bridge', ['ip', 'link', 'del', bridge]],
    ['service rules', ['nft', 'delete', ...service.split(' ')]],
    ['all rules', ['nft', 'flush', 'ruleset']],
    ['one chain', ['nft', 'flush', 'chain', ...of, 'nat_prerouting']],
    ['elements of one map', ['nft', 'flush', 'map', ...of, 'service_ips']],
  ];
  for (const [what, [file = '', ...args]] of damages) {
    // Restored rules are read back shortly afterwards; only then are changes detected.
    await sleep(1_000);
    await inside(file, ...args);
    await eventually(`${what} restored`, 20_000, async () => {
      const addresses = await inside('ip', 'addr');
      assert.deepEqual(await routes(), expectedRoutes);
      assert.deepEqual(await tables(), expectedTables);
      assert.ok(addresses.includes('172.30.0.10/32'));
      assert.equal((await rules()).length, expectedRules);
      assert.equal(await serviceIps(), expectedIps);
      return true;
    });
  }
  await appliance.must(['get', '--raw', '/readyz']);
});

test('reports a foreign chain that drops forwarded packets on the Node and the operator', {
  timeout: 180_000,
}, async () => {
  const condition = async (): Promise<{ status?: string; message?: string } | undefined> => {
    const { items } = JSON.parse(await appliance.must(['get', 'nodes', '-o', 'json'])) as { items: Node[] };
    return items[0]?.status?.conditions?.find(({ type }) => type === 'NetworkUnavailable');
  };
  const operator = async (): Promise<string> => {
    const ran = await appliance.kubectl(['get', 'clusteroperator', 'network', '-o', 'jsonpath={.status.conditions}']);
    return ran.code === 0 ? ran.stdout : '';
  };
  await inside(
    'nft',
    'add table ip foreign; add chain ip foreign forward { type filter hook forward priority 0; policy drop; }',
  );
  await eventually('the condition names the chain', 60_000, async () => {
    const found = await condition();
    return found?.status === 'True' && /table ip foreign, chain forward, policy drop/.test(found.message ?? '')
      ? true
      : undefined;
  });
  await eventually('the operator names the chain', 60_000, async () =>
    (await operator()).includes('table ip foreign, chain forward, policy drop') ? true : undefined,
  );
  await inside('nft', 'delete', 'table', 'ip', 'foreign');
  await eventually('the condition ends', 60_000, async () =>
    (await condition())?.status === 'False' ? true : undefined,
  );
});
