/** Permissions on the server's handlers, with synthetic callers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { Auth } from '../../../src/store/auth/auth.ts';
import { AuthGuard } from '../../../src/store/auth/auth-guard.ts';
import { authService } from '../../../src/store/auth/auth-service.ts';
import { simpleTokens } from '../../../src/store/auth/auth-tokens.ts';
import type { PasswordHasher } from '../../../src/store/auth/password.ts';
import { decodeProposal } from '../../../src/store/core/auth/command.ts';
import { AuthError, type AuthErrorCode } from '../../../src/store/core/auth/errors.ts';
import type { AuthCommand } from '../../../src/store/core/auth/types.ts';
import { writeDeleteRangeRequest, writePutRequest, writeRangeRequest } from '../../../src/store/core/messages/kv.ts';
import { Encoder } from '../../../src/store/services/encode.ts';
import { RpcCode, type StreamCall, type StreamHandler } from '../../../src/wire/grpc/port.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { clock } from '../harness.ts';

const refused = (code: AuthErrorCode) => (error: unknown) => error instanceof AuthError && error.code === code;

const plainHasher: PasswordHasher = {
  hash: async (password) => `plain ${password}`,
  verify: async (password, hash) => hash === `plain ${password}`,
};

interface Rig {
  readonly auth: Auth;
  readonly guard: AuthGuard;
  readonly log: Uint8Array[];
  /** Delivers the next entry of the log. */
  hear(entry: Uint8Array): void;
  readonly leases: Map<bigint, readonly string[]>;
  /** Simulated state of the member, such as whether a leader exists. */
  readonly mood: { led: boolean; replicatesTokens: boolean; stopped: boolean };
}

function rig(clientCertAuth = true, hasher: PasswordHasher = plainHasher): Rig {
  const log: Uint8Array[] = [];
  const leases = new Map<bigint, readonly string[]>();
  const waiting: Array<{ readonly index: number; resolve(): void }> = [];
  const mood = { led: true, replicatesTokens: true, stopped: false };
  const auth: Auth = new Auth({
    replicate: async (command) => {
      await Promise.resolve();
      hear(command);
    },
    tokens: simpleTokens(clock),
    progress: {
      applied: () => log.length,
      changed: () => undefined,
      isLed: () => mood.led,
      get stopped() {
        return mood.stopped;
      },
      appliedAt: (index) =>
        new Promise((resolve) => {
          waiting.push({ index, resolve });
        }),
    },
    hasher,
    replicatesTokens: () => mood.replicatesTokens,
    clientCertAuth,
  });
  const hear = (entry: Uint8Array): void => {
    log.push(entry);
    auth.apply(entry);
    for (const { index, resolve } of waiting) if (log.length >= index) resolve();
  };
  return {
    auth,
    log,
    hear,
    leases,
    mood,
    guard: new AuthGuard({ auth, log: silentLog, leaseKeys: (id) => leases.get(id) ?? [] }),
  };
}

const add = (name: string, noPassword = false): AuthCommand => ({
  kind: 'user-add',
  name,
  noPassword,
  passwordHash: noPassword ? '' : 'plain pw',
});

/**
 * Rig with auth enabled. alice may read `r` to `s` and write `w` to `x`, and both for the lock `lock`. bob has no
 * permission.
 */
async function enabled(clientCertAuth = true, hasher: PasswordHasher = plainHasher): Promise<Rig> {
  const made = rig(clientCertAuth, hasher);
  const permit = (type: number, key: string, end: string): AuthCommand => ({
    kind: 'role-grant-permission',
    role: 'r',
    permission: { type, key, end },
  });
  for (const command of [
    add('root'),
    add('alice'),
    add('bob'),
    add('cert', true),
    { kind: 'role-add', role: 'r' },
    permit(0, 'r', 's'),
    permit(1, 'w', 'x'),
    permit(2, 'lock/', 'lock0'),
    { kind: 'user-grant-role', name: 'alice', role: 'r' },
    { kind: 'user-grant-role', name: 'root', role: 'root' },
    { kind: 'enable' },
  ] satisfies AuthCommand[]) {
    await made.auth.change(command);
  }
  return made;
}

const identity = (metadata: Readonly<Record<string, string>>, commonName = '') => ({
  metadata: (name: string) => metadata[name],
  peerCommonName: () => commonName,
});

const ALLOWED = 'allowed';

/** Error that `user` receives for `message` to `path`. `ALLOWED` when the handler is reached. */
function decisionOn({ guard }: Rig, user: string, path: string, message: Uint8Array): string {
  let outcome = '';
  const call = {
    ...identity({}, user),
    reply: () => {},
    whenCancelled: () => {},
    fail: (_code: RpcCode, text: string) => {
      outcome = text;
    },
  };
  const handlers = guard.unary({ [path]: () => (outcome = ALLOWED) });
  handlers[path]?.(message, call);
  return outcome;
}

const DENIED = 'etcdserver: permission denied';
const NOTHING = Buffer.alloc(0);
const put = (key: string, more: { lease?: bigint; prevKv?: boolean } = {}): Buffer =>
  writePutRequest(new Writer(), { key, ...more }).finish();
const range = (key: string, end = ''): Buffer => writeRangeRequest(new Writer(), { key, end }).finish();
const numbers = (first: bigint, second = 0n): Buffer => new Writer().big(1, first).big(2, second).finish();

type Operation = readonly [kind: 1 | 2 | 3 | 4, message: Uint8Array];

/** Transaction that compares `compared` and has `operations` in one branch. */
function txn(compared: string | undefined, branch: 2 | 3, operations: readonly Operation[]): Buffer {
  const out = new Writer();
  if (compared !== undefined) out.message(1, new Writer().latin1(3, compared).finish());
  for (const [kind, message] of operations) out.message(branch, new Writer().message(kind, message).finish());
  return out.finish();
}

describe('authorization of calls', () => {
  it('permits every call while auth is disabled', () => {
    const off = rig();
    assert.equal(decisionOn(off, '', '/etcdserverpb.KV/Put', put('x')), ALLOWED);
    assert.equal(decisionOn(off, '', '/etcdserverpb.Maintenance/Defragment', NOTHING), ALLOWED);
    assert.equal(off.guard.watchRefusal({ ...identity({ token: 'rubbish' }) } as StreamCall, 'a', '\0'), undefined);
  });

  it('rejects calls without an authenticated caller', async () => {
    const on = await enabled();
    assert.equal(decisionOn(on, '', '/etcdserverpb.KV/Range', range('r')), 'etcdserver: user name is empty');
    assert.equal(decisionOn(on, 'nobody', '/etcdserverpb.KV/Range', range('r')), DENIED);
    assert.equal(decisionOn(on, 'nobody', '/etcdserverpb.Auth/UserList', NOTHING), 'etcdserver: user name not found');
    assert.equal(decisionOn(on, 'root', '/etcdserverpb.KV/Range', range('\0', '\0')), ALLOWED);
  });

  it('checks permissions for every key that a call reads or writes', async () => {
    const on = await enabled();
    on.leases.set(7n, ['w1', 'w2']);
    on.leases.set(8n, ['w1', 'q']);
    const del = (key: string, end: string, prevKv = false): Buffer =>
      writeDeleteRangeRequest(new Writer(), { key, end, prevKv }).finish();
    const [KV_RANGE, KV_PUT, KV_DELETE, KV_TXN] = ['Range', 'Put', 'DeleteRange', 'Txn'].map(
      (name) => `/etcdserverpb.KV/${name}`,
    ) as [string, string, string, string];
    const cases: readonly (readonly [path: string, message: Uint8Array, outcome: string])[] = [
      [KV_RANGE, range('r'), ALLOWED],
      [KV_RANGE, range('r', 's'), ALLOWED],
      [KV_RANGE, range('r', 's\0'), DENIED],
      [KV_RANGE, range('r', '\0'), DENIED],
      [KV_RANGE, range('w'), DENIED],
      [KV_PUT, put('w'), ALLOWED],
      [KV_PUT, put('r'), DENIED],
      [KV_PUT, put('w', { prevKv: true }), DENIED],
      [KV_PUT, put('lock/1', { prevKv: true }), ALLOWED],
      [KV_PUT, put('w', { lease: 7n }), ALLOWED],
      [KV_PUT, put('w', { lease: 8n }), DENIED],
      [KV_DELETE, del('w', 'x'), ALLOWED],
      [KV_DELETE, del('w', 'y'), DENIED],
      [KV_DELETE, del('w', 'x', true), DENIED],
      [KV_TXN, txn('r', 2, [[2, put('w')]]), ALLOWED],
      [KV_TXN, txn('w', 2, [[2, put('w')]]), DENIED],
      [KV_TXN, txn('r', 2, [[1, range('q')]]), DENIED],
      [KV_TXN, txn('r', 3, [[2, put('q')]]), DENIED],
      [KV_TXN, txn('r', 3, [[3, del('w', 'y')]]), DENIED],
      [KV_TXN, txn('r', 2, [[2, put('w', { prevKv: true })]]), DENIED],
      [KV_TXN, txn('r', 2, [[2, put('w', { lease: 8n })]]), DENIED],
      [KV_TXN, txn('r', 2, [[4, txn(undefined, 3, [[2, put('q')]])]]), DENIED],
      [KV_TXN, txn('r', 2, [[4, txn('w', 3, [])]]), DENIED],
      [KV_TXN, txn('r', 2, [[4, txn('r', 3, [[2, put('w')]])]]), ALLOWED],
      ['/etcdserverpb.Lease/LeaseRevoke', numbers(7n), ALLOWED],
      ['/etcdserverpb.Lease/LeaseRevoke', numbers(8n), DENIED],
      ['/etcdserverpb.Lease/LeaseRevoke', numbers(9n), ALLOWED],
      ['/etcdserverpb.Lease/LeaseTimeToLive', numbers(8n), ALLOWED],
      ['/etcdserverpb.Lease/LeaseTimeToLive', numbers(8n, 1n), DENIED],
    ];
    for (const [path, message, outcome] of cases) {
      const what = `${path} ${Buffer.from(message).toString('latin1')}`;
      assert.equal(decisionOn(on, 'alice', path, message), outcome, what);
      if (path.includes('/etcdserverpb.KV/')) assert.equal(decisionOn(on, 'bob', path, message), DENIED, what);
      assert.equal(decisionOn(on, 'root', path, message), ALLOWED, what);
    }
  });

  it('permits administrative calls and unknown methods only for root', async () => {
    const on = await enabled();
    for (const path of [
      ...['Defragment', 'Hash', 'HashKV', 'MoveLeader', 'Downgrade'].map((name) => `/etcdserverpb.Maintenance/${name}`),
      ...['MemberAdd', 'MemberRemove', 'MemberUpdate', 'MemberPromote'].map((name) => `/etcdserverpb.Cluster/${name}`),
      ...['AuthEnable', 'AuthDisable', 'AuthStatus', 'UserAdd', 'UserList', 'UserDelete', 'UserChangePassword'].map(
        (name) => `/etcdserverpb.Auth/${name}`,
      ),
      ...['UserGrantRole', 'UserRevokeRole', 'RoleAdd', 'RoleList', 'RoleDelete'].map(
        (name) => `/etcdserverpb.Auth/${name}`,
      ),
      ...['RoleGrantPermission', 'RoleRevokePermission'].map((name) => `/etcdserverpb.Auth/${name}`),
      '/etcdserverpb.KV/Compact',
      '/etcdserverpb.Some/Day',
    ]) {
      assert.equal(decisionOn(on, 'alice', path, NOTHING), DENIED, path);
      assert.equal(decisionOn(on, '', path, NOTHING), 'etcdserver: user name is empty', path);
      assert.equal(decisionOn(on, 'root', path, NOTHING), ALLOWED, path);
    }
  });

  it('permits every user to renew leases and to list members and alarms', async () => {
    const on = await enabled();
    for (const path of ['Cluster/MemberList', 'Maintenance/Alarm', 'Lease/LeaseGrant', 'Lease/LeaseLeases']) {
      assert.equal(decisionOn(on, 'bob', `/etcdserverpb.${path}`, NOTHING), ALLOWED, path);
      assert.equal(decisionOn(on, '', `/etcdserverpb.${path}`, NOTHING), 'etcdserver: user name is empty', path);
      assert.equal(decisionOn(on, 'nobody', `/etcdserverpb.${path}`, NOTHING), DENIED, path);
    }
    assert.equal(decisionOn(on, 'bob', '/etcdserverpb.Maintenance/Alarm', numbers(2n)), DENIED);
    assert.equal(decisionOn(on, '', '/etcdserverpb.Maintenance/Status', NOTHING), ALLOWED);
    assert.equal(decisionOn(on, '', '/etcdserverpb.Auth/Authenticate', NOTHING), ALLOWED);
  });

  it('permits users to read only their own user and roles', async () => {
    const on = await enabled();
    const named = (name: string): Buffer => new Writer().string(1, name).finish();
    assert.equal(decisionOn(on, 'alice', '/etcdserverpb.Auth/UserGet', named('alice')), ALLOWED);
    assert.equal(decisionOn(on, 'alice', '/etcdserverpb.Auth/UserGet', named('bob')), DENIED);
    assert.equal(decisionOn(on, 'alice', '/etcdserverpb.Auth/RoleGet', named('r')), ALLOWED);
    assert.equal(decisionOn(on, 'bob', '/etcdserverpb.Auth/RoleGet', named('r')), DENIED);
    assert.equal(decisionOn(on, '', '/etcdserverpb.Auth/UserGet', named('')), 'etcdserver: user name is empty');
  });

  it('rejects calls whose message cannot be parsed', async () => {
    const on = await enabled();
    assert.match(decisionOn(on, 'alice', '/etcdserverpb.KV/Put', Buffer.of(10, 99)), /malformed request/);
  });

  it('authorizes a stream by its first message, and ends the stream only once', async () => {
    const on = await enabled();
    const path = '/etcdserverpb.Lease/LeaseKeepAlive';
    const open = (user: string) => {
      const seen: string[] = [];
      const inner: StreamHandler = {
        message: () => seen.push('message'),
        ended: () => seen.push('ended'),
        closed: () => seen.push('closed'),
        drained: () => {},
      };
      const call: StreamCall = {
        ...identity({}, user),
        send: () => true,
        pause: () => {},
        resume: () => {},
        end: (code, text) => seen.push(`${code} ${text}`),
      };
      const handler = on.guard.streams({ [path]: () => inner })[path]?.(call) as StreamHandler;
      return { seen, handler };
    };
    const allowed = open('bob');
    allowed.handler.message(NOTHING);
    allowed.handler.message(NOTHING);
    allowed.handler.ended();
    assert.deepEqual(allowed.seen, ['message', 'message', 'ended']);
    const anonymous = open('');
    anonymous.handler.message(NOTHING);
    anonymous.handler.message(NOTHING);
    anonymous.handler.ended();
    anonymous.handler.closed();
    assert.deepEqual(anonymous.seen, [`${RpcCode.invalidArgument} etcdserver: user name is empty`, 'closed']);
  });

  it('rejects unauthorized watches with the error text of etcd', async () => {
    const { guard } = await enabled();
    const refusal = (metadata: Readonly<Record<string, string>>, user: string, key: string, end: string) =>
      guard.watchRefusal(identity(metadata, user) as StreamCall, key, end);
    assert.equal(refusal({}, 'alice', 'r', 's'), undefined);
    // GHSA-xg4h-6gfc-h4m8: an open-ended watch is not a watch of a single key.
    const denied = `rpc error: code = PermissionDenied desc = ${DENIED}`;
    assert.equal(refusal({}, 'alice', 'r', '\0'), denied);
    assert.equal(refusal({}, 'alice', 'w', ''), denied);
    assert.equal(
      refusal({ token: 'old' }, 'alice', 'r', ''),
      'rpc error: code = Unauthenticated desc = etcdserver: invalid auth token',
    );
  });
});

describe('caller identity', () => {
  it('the token identifies the caller even if the client also has a certificate', async () => {
    const { auth, mood } = await enabled();
    const token = await auth.authenticate('alice', 'pw');
    const { revision } = auth.machine;
    assert.deepEqual(auth.caller(identity({ token }, 'cert')), { user: 'alice', revision });
    assert.deepEqual(auth.caller(identity({ authorization: token })), { user: 'alice', revision });
    assert.equal(auth.tokenUser(token), 'alice');
    assert.equal(auth.tokenUser('other'), undefined);
    assert.deepEqual(auth.caller(identity({}, 'cert')), { user: 'cert', revision });
    assert.equal(auth.caller(identity({})), undefined);
    assert.throws(() => auth.caller(identity({ token: 'other' }, 'cert')), refused('invalid-token'));
    assert.throws(() => auth.caller(identity({ token: '' }, 'cert')), refused('invalid-token'));
    // A token that this member has not received before stopping may be valid on other members.
    mood.stopped = true;
    assert.throws(() => auth.caller(identity({ token: 'other' })), { code: 'closed' });
    assert.deepEqual(auth.caller(identity({ token })), { user: 'alice', revision });
  });

  it('ignores the client certificate of a gateway, and all client certificates if their use is disabled', async () => {
    const { auth } = await enabled();
    assert.equal(auth.caller(identity({ 'grpcgateway-accept': '*/*' }, 'cert')), undefined);
    const without = await enabled(false);
    assert.equal(without.auth.caller(identity({}, 'cert')), undefined);
  });
});

describe('authentication', () => {
  it('issues tokens while no leader is elected, which are valid until a leader is elected', async () => {
    const { auth, log, mood } = await enabled();
    mood.led = false;
    const entries = log.length;
    await assert.rejects(auth.authenticate('alice', 'wrong', true), refused('authentication-failed'));
    const token = await auth.authenticate('alice', 'pw', true);
    assert.equal(log.length, entries);
    assert.equal(auth.caller(identity({ token }))?.user, 'alice');
    const others = [];
    for (let i = 0; i < 100; i += 1) others.push(await auth.authenticate('alice', 'pw', true));
    assert.throws(() => auth.caller(identity({ token })), refused('invalid-token'));
    const last = others.at(-1) as string;
    assert.equal(auth.caller(identity({ token: last }))?.user, 'alice');
    mood.led = true;
    assert.throws(() => auth.caller(identity({ token: last })), refused('invalid-token'));
    mood.led = false;
    assert.throws(() => auth.caller(identity({ token: last })), refused('invalid-token'));
  });

  it('authenticates only while auth is enabled, with the correct password, and a user that has a password', async () => {
    await assert.rejects(rig().auth.authenticate('root', 'pw'), refused('not-enabled'));
    const { auth } = await enabled();
    await assert.rejects(auth.authenticate('alice', 'wrong'), refused('authentication-failed'));
    await assert.rejects(auth.authenticate('nobody', 'pw'), refused('authentication-failed'));
    await assert.rejects(auth.authenticate('cert', ''), refused('password-for-no-password-user'));
  });

  it('invalidates tokens of a user whose password changes, and all tokens when auth is disabled', async () => {
    const { auth } = await enabled();
    const [alice, bob] = [await auth.authenticate('alice', 'pw'), await auth.authenticate('bob', 'pw')];
    await auth.change({ kind: 'user-change-password', name: 'alice', passwordHash: 'plain new' });
    assert.equal(auth.tokenUser(alice), undefined);
    assert.equal(auth.tokenUser(bob), 'bob');
    await auth.change({ kind: 'disable' });
    assert.equal(auth.tokenUser(bob), undefined);
  });

  it('issues tokens that are valid on every member, even if the member learns of the token later', async () => {
    const here = await enabled();
    const range = '/etcdserverpb.KV/Range';
    const there = rig();
    for (const entry of here.log) there.hear(entry);
    const known = there.log.length;
    const token = await here.auth.authenticate('alice', 'pw');
    const responseTo = (sent: string): Promise<string> =>
      new Promise((resolve) => {
        const handlers = there.guard.unary({ [range]: () => resolve(ALLOWED) });
        handlers[range]?.(new Writer().latin1(1, 'r').finish(), {
          ...identity({ token: sent }),
          reply: () => {},
          fail: (_code, text) => resolve(text),
          whenCancelled: () => {},
        });
      });
    const seen: string[] = [];
    const stream = there.guard.streams({
      '/etcdserverpb.Watch/Watch': () => ({
        message: () => seen.push('message'),
        ended: () => seen.push('ended'),
        closed: () => seen.push('closed'),
        drained: () => {},
      }),
    });
    const call: StreamCall = {
      ...identity({ token }),
      pause: () => {},
      resume: () => {},
      send: () => true,
      end: (code) => seen.push(`end ${code}`),
    };
    const watch = stream['/etcdserverpb.Watch/Watch']?.(call);
    watch?.message(new Uint8Array());
    watch?.ended();
    const answer = responseTo(token);
    assert.match(await responseTo(`${token.split('.')[0]}.${known}`), /invalid auth token/);
    assert.deepEqual(seen, []);
    for (const entry of here.log.slice(known)) there.hear(entry);
    assert.equal(await answer, ALLOWED);
    assert.deepEqual(seen, ['message', 'ended']);
    assert.equal(await responseTo(token), ALLOWED);
    // Registering a token does not change the auth revision.
    assert.equal(there.auth.machine.revision, here.auth.machine.revision);
    assert.deepEqual(there.auth.export(), here.auth.export());
  });

  it('verifies a password again if it was changed during the verification', async () => {
    let change: (() => Promise<void>) | undefined;
    const slow: PasswordHasher = {
      hash: plainHasher.hash,
      verify: async (password, hash) => {
        await change?.();
        change = undefined;
        return plainHasher.verify(password, hash);
      },
    };
    const { auth } = await enabled(true, slow);
    change = () => auth.change({ kind: 'user-change-password', name: 'alice', passwordHash: 'plain new' });
    await assert.rejects(auth.authenticate('alice', 'pw'), refused('authentication-failed'));
    change = () => auth.change(add('carol'));
    assert.equal(auth.tokenUser(await auth.authenticate('alice', 'new')), 'alice');
  });

  it('authenticating an unknown user takes the same work as a known user', async () => {
    const seen: string[] = [];
    const counting: PasswordHasher = {
      hash: plainHasher.hash,
      verify: async (password, hash) => {
        seen.push(hash);
        return plainHasher.verify(password, hash);
      },
    };
    const { auth } = await enabled(true, counting);
    await assert.rejects(auth.authenticate('nobody', 'pw'), refused('authentication-failed'));
    assert.match(seen[0] ?? '', /^plain [0-9a-f]{32}$/);
  });
});

describe('AuthStatus', () => {
  it('AuthStatus reports whether auth is enabled, and the auth revision', async () => {
    const { auth } = await enabled();
    const status = async (): Promise<readonly number[]> => {
      const answered = Promise.withResolvers<Uint8Array>();
      const call = {
        ...identity({}),
        whenCancelled: () => {},
        fail: assert.fail,
        reply: (message: Uint8Array) => answered.resolve(message),
      };
      const encoder = new Encoder(1n, 2n);
      const handlers = authService({
        auth,
        encoder,
        log: silentLog,
        revision: () => 1,
        upToDate: async () => {},
        isLed: async () => true,
      });
      handlers['/etcdserverpb.Auth/AuthStatus']?.(NOTHING, call);
      const reader = new Reader(await answered.promise);
      const found = [0, 0];
      for (let field = reader.field(); field !== 0; field = reader.field()) {
        if (field === 2 || field === 3) found[field - 2] = reader.int();
        else reader.skip();
      }
      return found;
    };
    const { revision } = auth.machine;
    assert.deepEqual(await status(), [1, revision]);
    await auth.change({ kind: 'disable' });
    assert.deepEqual(await status(), [0, revision + 1]);
  });
});

describe('changes of auth', () => {
  it('applies changes of auth of other members from the log, and replaces the whole state by an import', async () => {
    const one = await enabled();
    const other = rig();
    for (const bytes of one.log) other.auth.apply(bytes);
    assert.deepEqual(Buffer.from(other.auth.export()), Buffer.from(one.auth.export()));
    const third = await enabled();
    const token = await third.auth.authenticate('alice', 'pw');
    third.auth.import(one.auth.export());
    assert.ok(third.auth.machine.enabled);
    assert.equal(third.auth.tokenUser(token), undefined, 'a token of the state before');
    assert.equal(await third.auth.authenticate('alice', 'pw').then(third.auth.tokenUser.bind(third.auth)), 'alice');
  });

  it('applies one of two identical concurrent changes of auth and rejects the second', async () => {
    const { auth, log } = rig();
    const outcomes = await Promise.allSettled([auth.change(add('twin')), auth.change(add('twin'))]);
    assert.equal(outcomes[0]?.status, 'fulfilled');
    assert.ok(outcomes[1]?.status === 'rejected' && refused('user-exists')(outcomes[1].reason));
    assert.equal(log.length, 2);
    assert.notEqual(decodeProposal(log[0] as Uint8Array).id, decodeProposal(log[1] as Uint8Array).id);
  });

  it('writes no change of auth to the log that would be rejected', async () => {
    const { auth, log } = rig();
    await assert.rejects(auth.change({ kind: 'enable' }), refused('root-user-missing'));
    assert.deepEqual(log, []);
  });
});
