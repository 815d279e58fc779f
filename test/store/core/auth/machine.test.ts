import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeProposal, encodeProposal } from '../../../../src/store/core/auth/command.ts';
import { AuthError, type AuthErrorCode } from '../../../../src/store/core/auth/errors.ts';
import { AuthMachine } from '../../../../src/store/core/auth/machine.ts';
import type { AuthCommand } from '../../../../src/store/core/auth/types.ts';
import { WireError } from '../../../../src/wire/protobuf/protobuf.ts';

const refused = (code: AuthErrorCode) => (error: unknown) => error instanceof AuthError && error.code === code;

const userAdd = (name: string): AuthCommand => ({
  kind: 'user-add',
  name,
  passwordHash: `hash of ${name}`,
  noPassword: false,
});
const grantRole = (name: string, role: string): AuthCommand => ({ kind: 'user-grant-role', name, role });
const grant = (role: string, type: number, key: string, end = ''): AuthCommand => ({
  kind: 'role-grant-permission',
  role,
  permission: { type, key, end },
});

function machineWith(...commands: readonly AuthCommand[]): AuthMachine {
  const machine = new AuthMachine();
  for (const command of commands) assert.equal(machine.apply(command), undefined, command.kind);
  return machine;
}

/** A machine with auth enabled, where alice may read `a` and write `b`. */
function enabled(): AuthMachine {
  return machineWith(
    userAdd('root'),
    grantRole('root', 'root'),
    userAdd('alice'),
    { kind: 'role-add', role: 'r' },
    grant('r', 0, 'a'),
    grant('r', 1, 'b'),
    grantRole('alice', 'r'),
    { kind: 'enable' },
  );
}

const EVERY_COMMAND: readonly AuthCommand[] = [
  { kind: 'enable' },
  { kind: 'disable' },
  userAdd('ü'),
  { kind: 'user-add', name: 'cert', passwordHash: '', noPassword: true },
  { kind: 'user-delete', name: 'u' },
  { kind: 'user-change-password', name: 'u', passwordHash: 'other' },
  grantRole('u', 'r'),
  { kind: 'user-revoke-role', name: 'u', role: 'r' },
  { kind: 'role-add', role: 'r' },
  { kind: 'role-delete', role: 'r' },
  grant('r', 2, '\xff\0', '\0'),
  { kind: 'role-grant-permission', role: 'r', permission: undefined },
  { kind: 'role-revoke-permission', role: 'r', key: 'k', end: 'l' },
];

describe('encoded auth commands', () => {
  it('decoding an encoded auth command yields the same command', () => {
    for (const command of EVERY_COMMAND) {
      const proposal = { id: -5n, command };
      assert.deepEqual(decodeProposal(encodeProposal(proposal)), proposal);
    }
  });

  it('rejects truncated, unknown and malformed auth commands', () => {
    const bytes = encodeProposal({ id: 1n, command: userAdd('alice') });
    assert.throws(() => decodeProposal(bytes.subarray(0, bytes.length - 1)), WireError);
    assert.throws(() => decodeProposal(Uint8Array.of(8, 99)), WireError);
    assert.throws(() => decodeProposal(Uint8Array.of(8, 1, 120, 1)), WireError);
  });
});

describe('auth machine', () => {
  it('rejects an invalid auth command with an error code and without a change of state', () => {
    const machine = enabled();
    const cases: readonly (readonly [AuthCommand, AuthErrorCode])[] = [
      [userAdd(''), 'user-empty'],
      [userAdd('alice'), 'user-exists'],
      [{ kind: 'user-delete', name: 'nobody' }, 'user-not-found'],
      [{ kind: 'user-delete', name: 'root' }, 'invalid-management'],
      [{ kind: 'user-change-password', name: 'nobody', passwordHash: 'x' }, 'user-not-found'],
      [grantRole('nobody', 'r'), 'user-not-found'],
      [grantRole('alice', 'nothing'), 'role-not-found'],
      [{ kind: 'user-revoke-role', name: 'alice', role: 'root' }, 'role-not-granted'],
      [{ kind: 'user-revoke-role', name: 'root', role: 'root' }, 'invalid-management'],
      [{ kind: 'role-add', role: '' }, 'role-empty'],
      [{ kind: 'role-add', role: 'r' }, 'role-exists'],
      [{ kind: 'role-delete', role: 'nothing' }, 'role-not-found'],
      [{ kind: 'role-delete', role: 'root' }, 'invalid-management'],
      [grant('nothing', 0, 'a'), 'role-not-found'],
      [grant('r', 0, 'b', 'a'), 'invalid-management'],
      [{ kind: 'role-grant-permission', role: 'r', permission: undefined }, 'permission-not-given'],
      [{ kind: 'role-revoke-permission', role: 'r', key: 'a', end: 'b' }, 'permission-not-granted'],
    ];
    const before = Buffer.from(machine.export());
    for (const [command, code] of cases) {
      assert.throws(() => machine.check(command), refused(code), code);
      assert.equal(machine.apply(command)?.code, code);
    }
    assert.deepEqual(Buffer.from(machine.export()), before);
  });

  it('checking an auth command without applying it does not change the state', () => {
    const machine = enabled();
    const before = Buffer.from(machine.export());
    machine.check(userAdd('bob'));
    machine.check({ kind: 'role-delete', role: 'r' });
    machine.check({ kind: 'disable' });
    assert.deepEqual(Buffer.from(machine.export()), before);
  });

  it('auth can be enabled only if the user root has the role root', () => {
    const machine = new AuthMachine();
    assert.equal(machine.apply({ kind: 'enable' })?.code, 'root-user-missing');
    machine.apply(userAdd('root'));
    assert.equal(machine.apply({ kind: 'enable' })?.code, 'root-role-missing');
    machine.apply(grantRole('root', 'root'));
    assert.equal(machine.apply({ kind: 'enable' }), undefined);
    assert.ok(machine.enabled);
    machine.apply({ kind: 'disable' });
    assert.equal(machine.apply({ kind: 'user-delete', name: 'root' }), undefined);
  });

  it('increments the auth revision for changes, but not for enabling or for commands without effect', () => {
    const machine = enabled();
    const { revision } = machine;
    machine.apply({ kind: 'enable' });
    machine.apply(grantRole('alice', 'r'));
    assert.equal(machine.revision, revision);
    machine.apply({ kind: 'disable' });
    assert.equal(machine.revision, revision + 1);
    machine.apply({ kind: 'disable' });
    machine.apply({ kind: 'enable' });
    assert.equal(machine.revision, revision + 1);
  });

  it('permits every request while auth is disabled', () => {
    const machine = machineWith(userAdd('alice'));
    machine.requireRoot(undefined);
    machine.requireUser(undefined);
    machine.requireAccess(undefined, 'write', 'a', '\0');
  });

  it('authorizes requests by the current roles of the user', () => {
    const machine = enabled();
    const alice = () => ({ user: 'alice', revision: machine.revision });
    machine.requireAccess(alice(), 'read', 'a', '');
    machine.requireAccess(alice(), 'write', 'b', '');
    assert.throws(() => machine.requireAccess(alice(), 'write', 'a', ''), refused('permission-denied'));
    assert.throws(() => machine.requireAccess(alice(), 'read', 'a', 'b'), refused('permission-denied'));
    assert.throws(() => machine.requireRoot(alice()), refused('permission-denied'));
    machine.apply(grant('r', 2, 'a'));
    machine.requireAccess(alice(), 'write', 'a', '');
    assert.equal(machine.role('r')?.permissions.length, 2, 'a second grant of the same range replaces the first');
    machine.apply({ kind: 'role-delete', role: 'r' });
    assert.throws(() => machine.requireAccess(alice(), 'read', 'a', ''), refused('permission-denied'));
    machine.apply({ kind: 'role-add', role: 'r' });
    machine.apply(grant('r', 2, 'a'));
    assert.throws(() => machine.requireAccess(alice(), 'read', 'a', ''), refused('permission-denied'));
    machine.apply(grantRole('alice', 'root'));
    machine.requireAccess(alice(), 'write', '\0', '\0');
    machine.requireRoot(alice());
    machine.apply({ kind: 'user-delete', name: 'alice' });
    assert.throws(() => machine.requireAccess(alice(), 'read', 'a', ''), refused('permission-denied'));
    assert.throws(() => machine.requireRoot(alice()), refused('user-not-found'));
  });

  it('accepts a token of an older auth revision only for administrative calls', () => {
    const machine = enabled();
    const root = { user: 'root', revision: machine.revision };
    machine.requireAccess(root, 'read', 'a', '');
    machine.apply(userAdd('bob'));
    machine.requireRoot(root);
    assert.throws(() => machine.requireAccess(root, 'read', 'a', ''), refused('old-revision'));
    assert.throws(() => machine.requireAccess(undefined, 'read', 'a', ''), refused('user-empty'));
  });

  it('sets no password for a user that was created without a password', () => {
    const machine = machineWith({ kind: 'user-add', name: 'cert', passwordHash: '', noPassword: true });
    machine.apply({ kind: 'user-change-password', name: 'cert', passwordHash: 'x' });
    assert.deepEqual(machine.user('cert'), { name: 'cert', passwordHash: '', noPassword: true, roles: [] });
  });

  it('exports and imports the whole auth state, and rejects damaged input without a change', () => {
    const machine = enabled();
    const copy = machineWith(userAdd('left over'), { kind: 'role-add', role: 'left over' });
    copy.import(machine.export());
    assert.deepEqual(Buffer.from(copy.export()), Buffer.from(machine.export()));
    assert.deepEqual(copy.userNames(), ['alice', 'root']);
    copy.requireAccess({ user: 'alice', revision: copy.revision }, 'read', 'a', '');
    const bytes = machine.export();
    assert.throws(() => copy.import(bytes.subarray(0, bytes.length - 1)), WireError);
    assert.deepEqual(Buffer.from(copy.export()), Buffer.from(bytes));
  });

  it('members that apply the same log reach the same auth state', () => {
    const log = [...EVERY_COMMAND, userAdd('u'), ...EVERY_COMMAND, userAdd('root'), ...EVERY_COMMAND].map(
      (command, i) => encodeProposal({ id: BigInt(i), command }),
    );
    const run = (): Buffer => {
      const machine = new AuthMachine();
      for (const bytes of log) machine.apply(decodeProposal(bytes).command);
      return Buffer.from(machine.export());
    };
    assert.deepEqual(run(), run());
  });
});
