import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { checkClock, rolesFor } from '../../../src/host/join/join.ts';
import { seal, unseal } from '../../../src/host/join/sealed-keys.ts';
import { groupsOf, newToken, parseRoles, parseToken, rolesOf } from '../../../src/host/join/token-format.ts';

const KEYS = {
  files: { 'etc/origin/master/ca.key': 'secret' },
  members: { h1: 'https://10.0.0.1:2380' },
  storeToken: undefined,
};

test('a node token is a bootstrap token; a master token also contains a secret that the cluster never receives', () => {
  const node = newToken(false, randomBytes);
  assert.match(node.text, /^[a-z0-9]{6}\.[a-z0-9]{16}$/);
  assert.equal(node.bearer, node.text);
  assert.equal(node.sealing, false);
  const master = newToken(true, randomBytes);
  assert.match(master.text, /^[a-z0-9]{6}\.[a-z0-9]{48}$/);
  assert.equal(master.bearer, master.text.slice(0, 23));
  assert.equal(master.stored.length, 16);
  for (const text of ['', 'abcdef', 'abcdef.short', 'ABCDEF.0123456789abcdef', `abcdef.${'a'.repeat(17)}`])
    assert.throws(() => parseToken(text, 'join.token'), { message: /^join\.token: is not a token; / });
});

test('decrypts keys only with the complete token', () => {
  const token = newToken(true, randomBytes);
  const sealed = seal(KEYS, token);
  assert.equal(sealed.includes('secret'), false);
  assert.deepEqual(unseal(sealed, token), { files: KEYS.files, members: KEYS.members });
  const { stored, id } = token;
  // The parts that the cluster stores: the id and the first part of the secret.
  for (const other of [`${id}.${stored}${'a'.repeat(32)}`, `${id}.${stored}`])
    assert.throws(() => unseal(sealed, parseToken(other, 'x')), { message: /does not decrypt the keys/ });
  const otherId = `${id.startsWith('a') ? 'b' : 'a'}${id.slice(1)}`;
  assert.throws(() => unseal(sealed, parseToken(`${otherId}.${token.secret}`, 'x')), {
    message: /does not decrypt the keys/,
  });
  const changed = Buffer.from(sealed);
  changed[20] = (changed[20] ?? 0) ^ 1;
  assert.throws(() => unseal(changed, token), { message: /does not decrypt the keys/ });
});

test('stores roles as groups of the token; a bootstrap file may request fewer roles, but not more', () => {
  assert.deepEqual(rolesOf(groupsOf(['master', 'etcd', 'node'])), ['master', 'etcd', 'node']);
  assert.deepEqual(rolesOf(['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token']), ['node']);
  assert.deepEqual(parseRoles('node,master', '--roles'), ['master', 'node']);
  assert.throws(() => parseRoles('master', '--roles'), { message: /add node: master,node/ });
  assert.throws(() => parseRoles('node,worker', '--roles'), { message: /^--roles: "worker" is not a role; / });
  const given = { roles: new Set(['master', 'node'] as const), bootstrapFile: 'b.yaml' };
  assert.deepEqual(rolesFor({ ...given, rolesGiven: false }, ['node']), ['node']);
  assert.deepEqual(rolesFor({ ...given, rolesGiven: true }, ['master', 'etcd', 'node']), ['master', 'node']);
  assert.throws(() => rolesFor({ ...given, rolesGiven: true }, ['node']), {
    message: /^b\.yaml: roles: the token is for node, not for master; /,
  });
});

test("rejects a clock that is years off, and reports the server's time and the command to set the clock", () => {
  const server = Date.UTC(2026, 5, 1, 12, 30, 0);
  checkClock('https://a:8443', server, server + 1_800_000);
  checkClock('https://a:8443', undefined, 0);
  assert.throws(() => checkClock('https://a:8443', server, Date.UTC(2031, 5, 1)), {
    message:
      /this host's clock \(2031-06-01 00:00:00 UTC\) is ahead of that of https:\/\/a:8443 .*date -u -s "2026-06-01 12:30:00"$/,
  });
  assert.throws(() => checkClock('https://a:8443', server, 0), {
    message: /\(1970-01-01 00:00:00 UTC\) is behind that/,
  });
});
