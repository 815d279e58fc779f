/** Runs the same etcdctl commands against Debian's etcd and this store. Exit codes and texts must be equal. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { createTokens } from '../../src/store/index.ts';
import { EtcdClient, type StatusError } from '../conformance/etcd/client.ts';
import {
  type Certificates,
  clock,
  connect,
  DEBIAN_ETCD,
  isInstalled,
  makeCertificates,
  remove,
  startDebianEtcd,
  startHere,
  temporaryDirectory,
} from './harness.ts';

const ETCDCTL = '/usr/bin/etcdctl';

let root = '';
let certificates: Certificates;
before(async () => {
  root = await temporaryDirectory();
  certificates = await makeCertificates(root);
});
after(() => remove(root));

/** One call: the command line, and its standard input. */
type Step = string | readonly [command: string, input: string];

/** Commands in order. Each step uses the state that the previous ones left. */
const SCRIPT: readonly Step[] = [
  'auth enable',
  'auth disable',
  'user list',
  'role list',
  // User commands.
  "user add '' --new-user-password pw",
  'user add alice --new-user-password pw',
  'user add alice --new-user-password pw',
  'user add bob:pw',
  ['user add carol --interactive=false', 'secret\n'],
  'user add cert-only --no-password',
  'user get alice',
  'user get alice --detail',
  'user get missing',
  'user list',
  'user delete carol',
  'user delete carol',
  'user list',
  ['user passwd missing --interactive=false', 'x\n'],
  // Role and permission commands.
  "role add ''",
  'role add reader',
  'role add reader',
  'role add writer',
  'role add empty',
  'role get missing',
  'role get reader',
  'role list',
  'role delete missing',
  'role grant-permission missing read a',
  'role grant-permission reader sideways a',
  'role grant-permission reader read a',
  'role grant-permission reader read c d',
  'role grant-permission reader read d e',
  'role grant-permission reader readwrite p --prefix',
  'role grant-permission reader readwrite x --from-key',
  'role grant-permission writer write b',
  'role grant-permission writer write c d',
  'role get reader',
  'role get reader -w fields',
  'role grant-permission reader write a',
  'role get reader',
  'role grant-permission reader read a',
  'role get reader',
  'role revoke-permission reader q',
  'role revoke-permission reader p',
  'role revoke-permission missing a',
  'role grant-permission reader readwrite gone --prefix',
  'role revoke-permission reader gone --prefix',
  'role get reader',
  'user grant-role missing reader',
  'user grant-role alice missing',
  'user grant-role alice writer',
  'user grant-role alice reader',
  'user grant-role alice reader',
  'user grant-role alice empty',
  'user revoke-role alice missing',
  'user revoke-role missing reader',
  'user revoke-role alice empty',
  'user revoke-role alice empty',
  'user get alice',
  'user get alice --detail',
  // Enabling auth.
  'auth enable',
  'user add root --new-user-password rootpw',
  'role delete root',
  'put a 0',
  'auth enable',
  'auth enable',
  'get a',
  'user list',
  'user get alice',
  'role get reader',
  '--user root:wrong get a',
  '--user missing:wrong get a',
  '--user cert-only:pw get a',
  '--user root:rootpw auth enable',
  '--user root:rootpw role get root',
  '--user root:rootpw role add root',
  '--user root:rootpw put b 1',
  '--user root:rootpw --password rootpw get b',
  '--user root --password rootpw get b',
  // Key commands.
  '--user alice:pw get a',
  '--user alice:pw put a 1',
  '--user alice:pw get b',
  '--user alice:pw put b 1',
  '--user alice:pw put b 1 --prev-kv',
  '--user alice:pw del b --prev-kv',
  '--user alice:pw del b',
  '--user alice:pw put c1 1 --prev-kv',
  '--user alice:pw get c e',
  '--user alice:pw get c ea',
  '--user alice:pw del c d',
  '--user alice:pw del c e',
  '--user alice:pw put p1 1',
  '--user alice:pw get p --prefix',
  '--user alice:pw get p --prefix --keys-only --limit 1',
  '--user alice:pw get p --from-key',
  '--user alice:pw put x 1',
  '--user alice:pw get x --from-key',
  '--user alice:pw get w --from-key',
  '--user alice:pw get xa zz --count-only --write-out fields --consistency s --rev 99',
  "--user alice:pw get '' --prefix",
  '--user alice:pw del x --from-key',
  '--user bob:pw get a',
  ['--user alice:pw txn', 'value("a") = "0"\n\nput b 2\n\nget a\n\n'],
  ['--user alice:pw txn', 'value("b") = "0"\n\nput b 2\n\nget a\n\n'],
  ['--user alice:pw txn', 'value("a") = "0"\n\nput b 2\n\nget b\n\n'],
  ['--user alice:pw txn', 'value("a") = "0"\n\nget a\n\nput a 2\n\n'],
  ['--user alice:pw txn', 'value("a") = "0"\n\ndel c d\n\nget a\n\n'],
  '--user alice:pw watch b',
  '--user alice:pw watch p q1',
  // Permission to read users and roles.
  '--user alice:pw user get alice',
  '--user alice:pw user get root',
  '--user alice:pw user get missing',
  '--user alice:pw role get reader',
  '--user alice:pw role get empty',
  '--user alice:pw role get missing',
  '--user alice:pw user list',
  '--user alice:pw role list',
  '--user alice:pw user add dave --new-user-password pw',
  '--user alice:pw user delete bob',
  ['--user alice:pw user passwd alice --interactive=false', 'new\n'],
  '--user alice:pw user grant-role alice root',
  '--user alice:pw role grant-permission reader read b',
  '--user alice:pw auth disable',
  '--user alice:pw alarm list',
  '--user alice:pw endpoint health',
  '--user alice:pw defrag',
  '--user alice:pw endpoint hashkv',
  '--user alice:pw snapshot save /dev/null/never',
  // A certificate as identity.
  'get a',
  '--user root:rootpw user add system:etcd-client --no-password',
  'get a',
  '--user root:rootpw user grant-role system:etcd-client reader',
  'get a',
  'put a 3',
  'user get system:etcd-client',
  'user list',
  '--user root:rootpw user grant-role system:etcd-client root',
  'user list',
  'put a 3',
  '--user root:rootpw user revoke-role system:etcd-client root',
  'user list',
  // The user root cannot be deleted or lose its role while auth is on.
  '--user root:rootpw user delete root',
  '--user root:rootpw user revoke-role root root',
  '--user root:rootpw role delete root',
  ['--user root:rootpw user passwd alice --interactive=false', 'newer\n'],
  '--user alice:pw get a',
  '--user alice:newer get a',
  '--user root:rootpw role delete reader',
  '--user root:rootpw user get alice',
  '--user alice:newer get a',
  '--user root:rootpw user delete alice',
  '--user alice:newer get a',
  '--user root:rootpw auth disable',
  'get a',
  '--user root:rootpw get a',
  'auth disable',
  'user revoke-role root root',
  'auth enable',
  'user delete root',
  'user list',
  'role list',
];

interface Outcome {
  readonly code: number;
  readonly text: string;
}

async function etcdctl(endpoint: string, [command, input]: readonly [string, string]): Promise<Outcome> {
  const { directory } = certificates;
  const tls = { cacert: 'ca.crt', cert: 'client.crt', key: 'client.key' };
  const flags = Object.entries(tls).map(([name, file]) => `--${name}=${join(directory, file)}`);
  const typed = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
  const child = spawn(ETCDCTL, [`--endpoints=${endpoint}`, ...flags, ...typed], {
    env: { ETCDCTL_API: '3', PATH: process.env['PATH'] },
    timeout: 20_000,
  });
  // A rejected command exits without reading its input.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const code = await new Promise<number>((resolve) => {
    child.once('close', (status) => resolve(status ?? -1));
  });
  return { code, text: normalised(text, endpoint) };
}

/** Removes values that differ between any two runs, and prefixes that differ between etcd patch releases. */
function normalised(text: string, endpoint: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('{"level"'))
    .map((line) =>
      line
        .replaceAll(endpoint, 'ENDPOINT')
        .replace(/rpc error: code = \w+ desc = /g, '')
        .replace(/\bauth: /g, 'etcdserver: ')
        .replace(/took = .*/, 'took = SOME')
        .replace(/^"(ClusterID|MemberID|Revision|RaftTerm)" :.*/, '"$1" : SOME'),
    )
    .sort()
    .join('\n');
}

/** Result of each call: code and message of the error, or the keys. */
async function playSessions(
  alice: EtcdClient,
  root: EtcdClient,
  nobody: EtcdClient,
  takePermission: () => Promise<void>,
): Promise<readonly unknown[]> {
  const reported: unknown[] = [];
  const hear = async (of: string, answer: Promise<{ readonly key?: string }>): Promise<void> => {
    reported.push(
      await answer.then(
        ({ key = '' }) => [of, key.replace(/\/.*/, '/LEASE')],
        (error: StatusError) => [of, error.code, error.message],
      ),
    );
  };
  const { ID: own } = await alice.grant(0n, 60);
  const { ID: other } = await root.grant(0n, 60);
  await root.put({ key: 'taken', lease: other });
  for (const name of ['lock', 'other', 'seen']) {
    const lease = own;
    await hear(`lock ${name}`, alice.call('v3lockpb.Lock/Lock', { name, lease }));
    await hear(
      `campaign ${name}`,
      alice.call('v3electionpb.Election/Campaign', { name, lease }).then(() => ({})),
    );
    await hear(
      `leader ${name}`,
      alice.call('v3electionpb.Election/Leader', { name }).then(() => ({})),
    );
  }
  await hear('lock of nobody', nobody.call('v3lockpb.Lock/Lock', { name: 'lock', lease: own }));
  await hear(
    'leader for nobody',
    nobody.call('v3electionpb.Election/Leader', { name: 'lock' }).then(() => ({})),
  );
  await hear(
    'unlock',
    alice.call('v3lockpb.Lock/Unlock', { key: 'taken' }).then(() => ({})),
  );
  const leader = { name: 'other', key: 'taken', rev: 1, lease: own };
  await hear(
    'proclaim',
    alice.call('v3electionpb.Election/Proclaim', { leader, value: 'x' }).then(() => ({})),
  );
  await hear(
    'resign',
    alice.call('v3electionpb.Election/Resign', { leader }).then(() => ({})),
  );
  const observed = await alice.open('v3electionpb.Election/Observe').send({ name: 'other' }).ended();
  reported.push(['observe', observed.code, observed.message]);
  // Another session is ahead of alice and unlocks after she has lost her permission.
  await root.call('v3lockpb.Lock/Unlock', { key: `lock/${own.toString(16)}` });
  const held = await root.call('v3lockpb.Lock/Lock', { name: 'lock', lease: other });
  const waits = alice.call('v3lockpb.Lock/Lock', { name: 'lock', lease: own });
  const settled = hear('lock after waiting', waits);
  const queue = { key: 'lock/', range_end: 'lock0', count_only: true };
  while ((await root.range(queue)).count < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  await takePermission();
  await root.call('v3lockpb.Lock/Unlock', { key: held.key });
  await settled;
  reported.push(['left in the queue', (await root.range(queue)).count]);
  return reported;
}

describe('etcdctl commands of auth, user and role', async () => {
  const installed = (await isInstalled(DEBIAN_ETCD)) && (await isInstalled(ETCDCTL));
  const skip = installed ? false : 'etcd-server and etcd-client are not installed';

  it('etcdctl auth, user and role commands return the same results as with etcd, step by step', { skip }, async () => {
    const theirs = await startDebianEtcd(await mkdtemp(join(root, 'theirs-')), certificates);
    const ours = await startHere(await mkdtemp(join(root, 'ours-')), certificates, { clientCertAuth: true });
    const differences: unknown[] = [];
    try {
      for (const [index, step] of SCRIPT.entries()) {
        const call = typeof step === 'string' ? ([step, ''] as const) : step;
        const [expected, found] = await Promise.all([etcdctl(theirs.endpoint, call), etcdctl(ours.endpoint, call)]);
        assert.notEqual(expected.code, -1, `step ${index}: etcdctl ${call[0]} did not end`);
        if (!isDeepStrictEqual(found, expected)) differences.push({ step: `${index}: ${call[0]}`, expected, found });
      }
      assert.deepEqual(differences, []);
    } finally {
      await Promise.all([theirs.stop(), ours.server.stop()]);
    }
  });

  it('etcdctl auth, user and role commands work with JSON web tokens, and fail for unauthenticated clients', {
    skip,
  }, async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = String(privateKey.export({ format: 'pem', type: 'pkcs8' }));
    const tokens = await createTokens('jwt,priv-key=jwt.key,sign-method=RS512,ttl=10m', clock, async () => pem);
    const { endpoint, server } = await startHere(await mkdtemp(join(root, 'jwt-')), certificates, { tokens });
    const expect = async (command: string, ends: 'well' | 'badly', text: RegExp): Promise<void> => {
      const found = await etcdctl(endpoint, [command, '']);
      assert.equal(found.code === 0 ? 'well' : 'badly', ends, `${command}: ${found.text}`);
      assert.match(found.text, text, command);
    };
    try {
      for (const command of [
        'user add root:pw',
        'user grant-role root root',
        'user add alice:pw',
        'role add r',
        'role grant-permission r readwrite a',
        'user grant-role alice r',
        'auth enable',
      ]) {
        await expect(command, 'well', /./);
      }
      // Without a token a client has no identity here: the client certificate is not used by default.
      const emptyUser = /user name is empty/;
      for (const command of [
        'get a',
        'member list',
        'lease grant 60',
        'lease list',
        'alarm list',
        'compact 1',
        'defrag',
      ]) {
        await expect(command, 'badly', emptyUser);
      }
      await expect('--user alice:pw put a 1', 'well', /OK/);
      await expect('--user alice:pw get a', 'well', /^1$/m);
      await expect('--user alice:pw get b', 'badly', /permission denied/);
      await expect('--user alice:pw member list', 'well', /started/);
      await expect('--user alice:pw endpoint health', 'well', /is healthy/);
      await expect('--user alice:pw lease grant 60', 'well', /granted/);
      const { text } = await etcdctl(endpoint, ['--user alice:pw lease list', '']);
      const lease = /^[0-9a-f]{8,}$/m.exec(text)?.[0] ?? 'none';
      await expect(`--user alice:pw lease keep-alive --once ${lease}`, 'well', /keepalived/);
      await expect(`lease keep-alive --once ${lease}`, 'badly', emptyUser);
      await expect(`--user root:pw put b 1 --lease ${lease}`, 'well', /OK/);
      await expect(`--user alice:pw put a 2 --lease ${lease}`, 'badly', /permission denied/);
      await expect(`--user alice:pw lease revoke ${lease}`, 'badly', /permission denied/);
      await expect(`--user alice:pw lease timetolive ${lease}`, 'well', /remaining/);
      await expect(`--user alice:pw lease timetolive ${lease} --keys`, 'badly', /permission denied/);
      for (const command of ['compact 2', 'defrag']) {
        await expect(`--user alice:pw ${command}`, 'badly', /permission denied/);
        await expect(`--user root:pw ${command}`, 'well', /^/);
      }
      await expect(`--user root:pw snapshot save ${join(root, 'snapshot.db')}`, 'well', /saved/);
      await expect(`--user root:pw lease revoke ${lease}`, 'well', /revoked/);
      await expect('--user root:pw auth disable', 'well', /Disabled/);
      await expect('get a', 'well', /^1$/m);
    } finally {
      await server.stop();
    }
  });

  it('checks permissions at each step of locks and elections, also if a permission is revoked during the wait', {
    skip,
  }, async () => {
    const setUp = [
      ...['root', 'alice'].map((name) => `user add ${name}:pw`),
      'role add sessions',
      'role grant-permission sessions readwrite lock/ lock0',
      'role grant-permission sessions read seen/ seen0',
      'user grant-role alice sessions',
      'user grant-role root root',
      'auth enable',
    ];
    const play = async (endpoint: string): Promise<readonly unknown[]> => {
      for (const command of setUp) assert.equal((await etcdctl(endpoint, [command, ''])).code, 0, command);
      const { ca, client } = certificates;
      const open = async (name: string): Promise<EtcdClient> => {
        const made = new EtcdClient(endpoint, { ca, ...client });
        if (name !== '')
          made.token = (await made.call('etcdserverpb.Auth/Authenticate', { name, password: 'pw' })).token;
        return made;
      };
      const [alice, root, nobody] = [await open('alice'), await open('root'), await open('')];
      try {
        return await playSessions(alice, root, nobody, async () => {
          const command = '--user root:pw user revoke-role alice sessions';
          assert.equal((await etcdctl(endpoint, [command, ''])).code, 0);
        });
      } finally {
        for (const each of [alice, root, nobody]) each.close();
      }
    };
    const theirs = await startDebianEtcd(await mkdtemp(join(root, 'theirs-')), certificates);
    const ours = await startHere(await mkdtemp(join(root, 'ours-')), certificates, { clientCertAuth: true });
    try {
      const [expected, found] = await Promise.all([play(theirs.endpoint), play(ours.endpoint)]);
      assert.deepEqual(found, expected);
    } finally {
      await Promise.all([theirs.stop(), ours.server.stop()]);
    }
  });

  it("grants access to the common name of the API server's client certificate, and revokes it", {
    skip,
  }, async () => {
    const data = await mkdtemp(join(root, 'certificate-'));
    const { endpoint, server } = await startHere(data, certificates, { clientCertAuth: true });
    const store = connect(endpoint, certificates);
    const type = async (command: string): Promise<void> => {
      const { code, text } = await etcdctl(endpoint, [command, '']);
      assert.equal(code, 0, `${command}: ${text}`);
    };
    const put = () => store.commit({ guards: [], puts: [{ key: 'a', value: Buffer.from('1') }] });
    try {
      await type('user add root:pw');
      await type('user grant-role root root');
      await type('user add system:etcd-client --no-password');
      await type('user grant-role system:etcd-client root');
      await type('auth enable');
      await put();
      assert.equal((await store.range('a', 'b')).count, 1);
      await type('--user root:pw user revoke-role system:etcd-client root');
      await assert.rejects(put(), /permission denied/);
      await assert.rejects(store.range('a', 'b'), /permission denied/);
    } finally {
      await store.close();
      await server.stop();
    }
  });
});
