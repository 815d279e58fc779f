/** Constrained impersonation (KEP-5284). */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';

interface Whoami {
  readonly message: string;
  readonly status: {
    readonly userInfo: { readonly username: string; readonly groups: string[] };
    readonly token: string;
  };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const AUTH = 'authentication.k8s.io';
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
const NODE = { 'impersonate-user': 'system:node:n' };
const ACCOUNT = { 'impersonate-user': 'system:serviceaccount:default:robot' };
const DAVE = { 'impersonate-user': 'dave' };

describe('constrained impersonation', () => {
  let server: TestServer;
  let carol: KeyPair;
  const post = (path: string, body: object) => server.call<Whoami>('POST', path, { body });
  const grant = async (name: string, kind: string, user: string, rules: [verb: string, resource: string][]) => {
    const all = rules.map(([verb, resource]) => ({ verbs: [verb], apiGroups: ['', AUTH], resources: [resource] }));
    await post(`${RBAC}/clusterroles`, { metadata: { name }, rules: all });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
    await post(`${RBAC}/clusterrolebindings`, {
      metadata: { name },
      roleRef,
      subjects: [{ kind, name: user, ...(kind === 'User' ? {} : { namespace: 'default' }) }],
    });
  };
  /** User name and groups that the server sees for carol, or for the bearer of the token. */
  const as = async (headers: Record<string, string>, who: KeyPair | null = carol) => {
    const path = `/apis/${AUTH}/v1/selfsubjectreviews`;
    const { code, body } = await server.call<Whoami>('POST', path, { as: who, headers, body: {} });
    if (code !== 201) return `${code} ${body.message}`;
    return [body.status.userInfo.username, ...body.status.userInfo.groups].join(' ');
  };
  const refused = (verb: string, resource: string, name: string, tail = ' at the cluster scope') =>
    `403 ${resource}.${AUTH}${name} is forbidden: User "carol" cannot ${verb} resource "${resource}" in API group "${AUTH}"${tail}`;
  const on = (mode: string) => `impersonate-on:${mode}:create`;

  before(async () => {
    server = await startServer();
    carol = await server.user('carol');
    await post(ACCOUNTS, { metadata: { name: 'robot' } });
  });
  after(() => server.stop());

  it('constrained impersonation requires permission for the request and for the user', async () => {
    assert.equal(await as(DAVE), refused(on('user-info'), 'selfsubjectreviews', ''));
    await grant('on', 'User', 'carol', [
      [on('user-info'), 'selfsubjectreviews'],
      [on('arbitrary-node'), '*'],
      [on('serviceaccount'), '*'],
    ]);
    assert.equal(await as(DAVE), refused('impersonate:user-info', 'users', ' "dave"'));
    assert.equal(await as(NODE), refused('impersonate:arbitrary-node', 'nodes', ' "n"'));
    const where = ' in the namespace "default"';
    assert.equal(await as(ACCOUNT), refused('impersonate:serviceaccount', 'serviceaccounts', ' "robot"', where));
    await grant('users', 'User', 'carol', [
      ['impersonate:user-info', 'users'],
      ['impersonate:user-info', 'groups'],
      ['impersonate:user-info', 'userextras/example.com/a'],
      ['impersonate:arbitrary-node', 'nodes'],
      ['impersonate:serviceaccount', 'serviceaccounts'],
    ]);
    assert.equal(await as(DAVE), 'dave system:authenticated');
    assert.equal(await as({ ...DAVE, 'impersonate-group': 'dev' }), 'dave dev system:authenticated');
    assert.equal(await as({ ...DAVE, 'impersonate-extra-example.com%2fa': 'x' }), 'dave system:authenticated');
    assert.equal(await as(NODE), 'system:node:n system:nodes system:authenticated');
    const groups = 'system:serviceaccounts system:serviceaccounts:default system:authenticated';
    assert.equal(await as(ACCOUNT), `system:serviceaccount:default:robot ${groups}`);
    const { body } = await server.call<Whoami>('GET', '/api/v1/namespaces', { as: carol, headers: DAVE });
    assert.match(body.message, /cannot impersonate-on:user-info:list resource "namespaces" in API group ""/);
    const path = await server.call<Whoami>('GET', '/api', { as: carol, headers: DAVE });
    assert.match(path.body.message, /User "carol" cannot impersonate-on:user-info:get path "\/api"/);
  });

  it('constrained impersonation never permits system:masters, and gives nodes only their own groups', async () => {
    assert.equal(
      await as({ ...DAVE, 'impersonate-group': 'system:masters' }),
      `${refused('impersonate:user-info', 'groups', ' "system:masters"')}: impersonating the system:masters group is not allowed`,
    );
    const tail =
      ': impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")';
    assert.equal(
      await as({ ...DAVE, 'impersonate-extra-a': 'x' }),
      `${refused('impersonate:user-info', 'userextras', '')}${tail}`,
    );
    assert.match(await as({ ...NODE, 'impersonate-group': 'system:nodes' }), /cannot impersonate resource "users"/);
    assert.equal(
      await as({ 'impersonate-group': 'dev' }),
      '400 requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)} without impersonating a user name',
    );
  });

  it('lets a pod impersonate only the node on which it runs', async () => {
    await post('/api/v1/nodes', { metadata: { name: 'n' } });
    const spec = { nodeName: 'n', serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] };
    await post('/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec });
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p' };
    const token = async (more: object) => {
      const { body } = await post(`${ACCOUNTS}/robot/token`, { spec: more });
      return { authorization: `Bearer ${body.status.token}` };
    };
    await grant('own-node', 'ServiceAccount', 'robot', [
      [on('associated-node'), 'selfsubjectreviews'],
      ['impersonate:associated-node', 'nodes'],
    ]);
    const own = await token({ boundObjectRef });
    assert.equal(await as({ ...own, ...NODE }, null), 'system:node:n system:nodes system:authenticated');
    assert.match(await as({ ...own, 'impersonate-user': 'system:node:m' }, null), /^403 /);
    assert.match(await as({ ...(await token({})), ...NODE }, null), /^403 .*impersonate-on:arbitrary-node:create/);
  });
});
