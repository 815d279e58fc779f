/** Commands of a host on stores with auth enabled: hyperedge etcd and Debian's etcd. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { createEtcdAdmin } from '../../../src/store/client/etcd-admin.ts';
import { clock } from '../../store/harness.ts';
import { done, etcdctl, hyperedge, killAll, start } from '../stores.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-store-auth-'));
});
after(() => rm(directory, { recursive: true, force: true }));
afterEach(killAll);

async function enableAuth(endpoint: string): Promise<void> {
  await etcdctl(endpoint, 'user', 'add', 'root:se:cret');
  await etcdctl(endpoint, 'user', 'grant-role', 'root', 'root');
  await etcdctl(endpoint, 'user', 'add', 'guest:g');
  await etcdctl(endpoint, 'auth', 'enable');
}

for (const whose of ['ours', 'debian'] as const) {
  test(`lists members and saves snapshots of ${whose === 'ours' ? 'hyperedge etcd' : 'Debian etcd'} with name and password`, {
    timeout: 120_000,
  }, async () => {
    const store = await start(whose, { name: 'a', data: join(directory, whose) });
    const at = ['--endpoints', store.endpoint];
    const root = [...at, '--user', 'root:se:cret'];
    // A store without auth ignores the credentials.
    assert.match(await done('members', ...root), /^a .* leader /m);
    await enableAuth(store.endpoint);
    const file = join(directory, `${whose}.db`);
    const refusals = [
      [['snapshot', 'save', file, ...at], /user name is empty|invalid auth token/],
      [['snapshot', 'save', file, ...at, '--user', 'guest:g'], /permission denied/],
      [['snapshot', 'save', file, ...at, '--user', 'root:other'], /authentication failed, invalid user ID or password/],
      [['members', 'add', 'b', 'http://127.0.0.1:1', ...at, '--user', 'guest:g'], /permission denied/],
      [['members', ...at, '--user', 'root'], /--user: give NAME:PASSWORD/],
    ] as const;
    // Each command is a process, so checks that do not depend on the store run only once.
    for (const [args, output] of whose === 'ours' ? refusals : refusals.slice(0, 1)) {
      const { code, err } = await hyperedge(...args);
      assert.notEqual(code, 0, args.join(' '));
      assert.match(err, output, args.join(' '));
    }
    await done('snapshot', 'save', file, ...root);
    if (whose === 'debian') return;
    assert.match(await done('members', 'add', 'b', 'http://127.0.0.1:1', '--learner', ...root), /member \w+ added/);
    const [, added = ''] =
      /(\w+), unstarted/.exec(await etcdctl(store.endpoint, 'member', 'list', '--user', 'root:se:cret')) ?? [];
    assert.match(await done('members', 'remove', added, ...root), /removed/);
  });
}

test('the etcd client authenticates again when its token is no longer valid', { timeout: 60_000 }, async () => {
  const data = join(directory, 'again');
  const store = await start('ours', { name: 'a', data, args: ['--auth-token-ttl', '1'] });
  await enableAuth(store.endpoint);
  const user = { name: 'root', password: 'se:cret' };
  const admin = createEtcdAdmin({ endpoints: [store.endpoint], user, log: silentLog, clock });
  await admin.leases();
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await admin.leases();
  admin.close();
});
