/** Two hosts and a neighbor on one bridge, as network namespaces: the neighbor follows the address when it moves. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ID = `hevip${process.pid % 100_000}`;
const ip = (...args: string[]) => run('ip', args);
const inside = async (name: string, ...args: string[]): Promise<string> =>
  (await run('ip', ['netns', 'exec', `${ID}${name}`, ...args])).stdout;
const MODULE = join(import.meta.dirname, '../../../../src/network/pods/io/shared-address.ts');
const act = (name: string, address: string, script: string): Promise<string> =>
  inside(
    name,
    process.execPath,
    '--input-type=module',
    '-e',
    `import { createSharedAddress } from ${JSON.stringify(MODULE)};
     const shared = createSharedAddress({ address: '${address}', link: 'eth0', lifetimeSeconds: 4 });
     ${script}`,
  );
const missing = process.geteuid?.() === 0 ? false : 'needs root for network namespaces';

describe('shared address', { skip: missing, timeout: 60_000 }, () => {
  before(async () => {
    for (const name of ['a', 'b', 'n']) await ip('netns', 'add', `${ID}${name}`);
    await inside('n', 'ip', 'link', 'add', 'br0', 'type', 'bridge');
    await inside('n', 'ip', 'link', 'set', 'br0', 'up');
    await inside('n', 'ip', 'address', 'add', '10.9.0.9/24', 'dev', 'br0');
    await inside('n', 'ip', 'address', 'add', 'fd09::9/64', 'dev', 'br0', 'nodad');
    for (const [at, name] of ['a', 'b'].entries()) {
      await inside('n', 'ip', 'link', 'add', `v${name}`, 'type', 'veth', 'peer', 'eth0', 'netns', `${ID}${name}`);
      await inside('n', 'ip', 'link', 'set', `v${name}`, 'master', 'br0', 'up');
      await inside(name, 'ip', 'address', 'add', `10.9.0.${at + 1}/24`, 'dev', 'eth0');
      await inside(name, 'ip', 'address', 'add', `fd09::${at + 1}/64`, 'dev', 'eth0', 'nodad');
      await inside(name, 'ip', 'link', 'set', 'eth0', 'up');
    }
  });
  after(async () => {
    for (const name of ['a', 'b', 'n']) await ip('netns', 'delete', `${ID}${name}`);
  });

  const hardwareOf = async (name: string): Promise<string> =>
    / link\/ether (\S+)/.exec(await inside(name, 'ip', '-o', 'link', 'show', 'eth0'))?.[1] ?? '';
  const knownAs = async (address: string): Promise<string | undefined> =>
    / lladdr (\S+)/.exec(await inside('n', 'ip', 'neigh', 'show', address))?.[1];
  /** Any datagram makes the neighbor resolve the address. */
  const look = (address: string) =>
    inside('n', 'bash', '-c', `echo x >/dev/udp/${address}/9; sleep 1.2`).catch(() => '');

  for (const address of ['10.9.0.100', 'fd09::100']) {
    it(`neighbors learn a new holder of the shared address ${address} immediately`, async () => {
      await act('a', address, 'await shared.add();');
      await look(address);
      assert.equal(await knownAs(address), await hardwareOf('a'));
      await act('a', address, 'await shared.remove();');
      await act('b', address, 'await shared.add(); await new Promise((done) => setTimeout(done, 300));');
      assert.equal(await knownAs(address), await hardwareOf('b'));
      await act('b', address, 'await shared.remove(); await shared.remove();');
    });
  }

  it('the kernel removes the shared address if its holder does not renew it', async () => {
    await act('a', '10.9.0.101', 'await shared.add();');
    assert.match(await inside('a', 'ip', '-4', 'address', 'show', 'eth0'), /10\.9\.0\.101/);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await act('a', '10.9.0.101', 'await shared.extend();');
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.match(await inside('a', 'ip', '-4', 'address', 'show', 'eth0'), /10\.9\.0\.101/, 'extended');
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    assert.doesNotMatch(await inside('a', 'ip', '-4', 'address', 'show', 'eth0'), /10\.9\.0\.101/);
  });
});
