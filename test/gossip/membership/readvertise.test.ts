/** A member with a new address returns to the ring automatically. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { directory, startAgent, type TestAgent } from './agents.ts';

const names = async ({ agent }: TestAgent): Promise<readonly string[]> => {
  const session = agent.open();
  const members = (await session.request('members', {}, () => {})) as { name: string; state: string }[];
  session.closed();
  return members.flatMap(({ name, state }) => (state === 'alive' ? [name] : [])).sort();
};

async function untilRing(agents: readonly TestAgent[], wanted: readonly string[]): Promise<void> {
  const until = performance.now() + 10_000;
  for (const each of agents)
    for (;;) {
      const seen = await names(each).catch((error: Error) => [error.message]);
      if (seen.join() === wanted.join()) break;
      assert.ok(performance.now() < until, `${each.name} sees ${seen.join()}`);
      await sleep(50);
    }
}

test('returns to the ring under a new address without configured peers', async () => {
  await using place = await directory();
  await using first = await startAgent('a', { directory: place.path });
  const peers = [`127.0.0.1:${first.address.port}`];
  await using second = await startAgent('b', { directory: place.path, peers });
  await using third = await startAgent('c', { directory: place.path, peers });
  const all = [first, second, third];
  await untilRing(all, ['a', 'b', 'c']);
  await first.agent.readvertise({ roles: ['etcd'], addresses: new Map([['etcd', '127.0.0.1:2380']]), version: 'v1' });
  await untilRing(all, ['a', 'b', 'c']);
});

test('stays stopped if it is stopped while it changes its address', async () => {
  await using place = await directory();
  await using first = await startAgent('a', { directory: place.path });
  await using second = await startAgent('b', { directory: place.path, peers: [`127.0.0.1:${first.address.port}`] });
  await untilRing([first, second], ['a', 'b']);
  const changed = second.agent.readvertise({ roles: [], addresses: new Map(), version: 'v1' });
  await sleep(200);
  await second.agent.stop();
  await changed;
  await assert.rejects(names(second));
});

test('joins learned peers when the configured peers are unreachable', async () => {
  await using place = await directory();
  await using first = await startAgent('a', { directory: place.path });
  await using second = await startAgent('b', { directory: place.path, peers: ['127.0.0.1:1'] });
  second.agent.setPeers([`127.0.0.1:${first.address.port}`]);
  await untilRing([first, second], ['a', 'b']);
});

test('joins former addresses of hosts only while the ring has no other members', async () => {
  await using place = await directory();
  await using first = await startAgent('a', { directory: place.path });
  await using second = await startAgent('b', { directory: place.path, peers: [`127.0.0.1:${first.address.port}`] });
  await untilRing([first, second], ['a', 'b']);
  // This member is like the only master after a reboot with another address: its peers are its own former addresses.
  await using third = await startAgent('c', { directory: place.path, peers: ['127.0.0.1:1'] });
  third.agent.setPeers(['127.0.0.1:2'], ['127.0.0.1:3', `127.0.0.1:${second.address.port}`]);
  await untilRing([first, second, third], ['a', 'b', 'c']);
  await using lonely = await startAgent('d', { directory: place.path });
  first.agent.setPeers([], [`127.0.0.1:${lonely.address.port}`]);
  await sleep(1_000);
  assert.deepEqual(await names(lonely), ['d']);
});

test('a restarted process with learned peers rejoins after it left', async () => {
  await using place = await directory();
  await using first = await startAgent('a', { directory: place.path });
  const second = await startAgent('b', { directory: place.path, peers: [`127.0.0.1:${first.address.port}`] });
  await untilRing([first, second], ['a', 'b']);
  await second.agent.stop();
  await second.kill();
  await untilRing([first], ['a']);
  // With another address, the name would be free only two seconds after the leave.
  const { port } = second.address;
  await using again = await startAgent('b', { directory: place.path, peers: ['127.0.0.1:1'], port });
  again.agent.setPeers([`127.0.0.1:${first.address.port}`]);
  await untilRing([first, again], ['a', 'b']);
});
