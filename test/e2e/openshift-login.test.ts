/** `oc login` to one host: the requests of `oc login -u -p` with curl, and the real `oc` if available. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { hashSync } from 'bcryptjs';
import { Appliance } from './harness.ts';

const OC = process.env['HYPEREDGE_OC'] ?? '';
const SERVER = 'https://127.0.0.1:8443';
const IMPLICIT = `${SERVER}/oauth/token/implicit`;
const HEAD = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n';
const PASSWORD = 'a-good-password';

describe('oc login', { timeout: 240_000 }, () => {
  let host: Appliance;
  let ca = '';

  before(async () => {
    host = await Appliance.create();
    const directory = join(host.root, 'etc/origin');
    await mkdir(join(directory, 'master'), { recursive: true });
    const users = join(directory, 'master/users.htpasswd');
    await writeFile(users, `dev:${hashSync(PASSWORD, 10)}\n`, { mode: 0o600 });
    await writeFile(
      join(directory, 'bootstrap.yaml'),
      `${HEAD}openshift:\n  identityProviders:\n  - name: local\n    mappingMethod: claim\n    htpasswd: {file: ${users}}\n`,
      { mode: 0o600 },
    );
    await host.start();
    ca = join(host.root, 'etc/origin/master/ca.crt');
  });
  after(() => host?.stop());

  const curl = async (...args: string[]): Promise<string> => {
    const ran = await host.inside('curl', ['-sS', '--cacert', ca, ...args]);
    assert.equal(ran.code, 0, ran.stderr);
    return ran.stdout;
  };
  const codeLogin = async (user: string, password: string): Promise<string> => {
    const verifier = randomBytes(32).toString('base64url');
    const query = new URLSearchParams({
      client_id: 'openshift-challenging-client',
      response_type: 'code',
      redirect_uri: IMPLICIT,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString();
    const authorize = ['-D', '-', '-o', '/dev/null', '-H', 'X-CSRF-Token: 1', `${SERVER}/oauth/authorize?${query}`];
    assert.match(await curl(...authorize), /401[\s\S]*www-authenticate: basic realm="openshift"/i);
    const headers = await curl('-u', `${user}:${password}`, ...authorize);
    const [, location = ''] = /^location: (\S+)/im.exec(headers) ?? [];
    const code = new URL(location).searchParams.get('code') ?? '';
    const answer = await curl(
      ...['-u', 'openshift-challenging-client:', '-d', 'grant_type=authorization_code', '-d', `code=${code}`],
      ...['-d', `redirect_uri=${IMPLICIT}`, '-d', `code_verifier=${verifier}`, `${SERVER}/oauth/token`],
    );
    return (JSON.parse(answer) as { access_token: string }).access_token;
  };
  const whoami = (token: string): Promise<string> =>
    curl('-H', `Authorization: Bearer ${token}`, `${SERVER}/apis/user.openshift.io/v1/users/~`);

  test('returns a token for the requests of oc login -u dev -p, and revokes it on logout', async () => {
    const began = performance.now();
    const token = await codeLogin('dev', PASSWORD);
    console.log(`login of the packaged executable: ${Math.round(performance.now() - began)} ms with the hash and curl`);
    assert.equal((JSON.parse(await whoami(token)) as { metadata: { name: string } }).metadata.name, 'dev');
    const name = `sha256~${createHash('sha256').update(token.slice('sha256~'.length)).digest('base64url')}`;
    const path = `${SERVER}/apis/oauth.openshift.io/v1/useroauthaccesstokens/${name}`;
    await curl('-X', 'DELETE', '-H', `Authorization: Bearer ${token}`, path);
    assert.equal((JSON.parse(await whoami(token)) as { code: number }).code, 401);
    const users = await host.must(['get', 'users.user.openshift.io,identities.user.openshift.io']);
    assert.match(users, /local:dev/);
    assert.ok(!host.output.includes(token.slice('sha256~'.length)));
  });

  test('accepts the administrator password that hyperedge kubeadmin create prints', async () => {
    const created = await host.hyperedge(['kubeadmin', 'create', '--root', host.root]);
    assert.equal(created.code, 0, created.stderr);
    const password = created.stdout.trim();
    assert.ok(password.length >= 23);
    const token = await codeLogin('kubeadmin', password);
    const nodes = await curl('-H', `Authorization: Bearer ${token}`, `${SERVER}/api/v1/nodes`);
    assert.equal((JSON.parse(nodes) as { kind: string }).kind, 'NodeList');
    await host.must(['delete', 'secret', 'kubeadmin', '-n', 'kube-system']);
    assert.equal((JSON.parse(await whoami(token)) as { code: number }).code, 401);
  });

  test('supports login, whoami and logout of the real oc', async (context) => {
    if (OC === '' || !existsSync(OC)) return context.skip('HYPEREDGE_OC names no oc');
    const env = { HOME: host.root, KUBECONFIG: join(host.root, 'oc.kubeconfig') };
    const oc = (...args: string[]) => host.inside(OC, args, { env });
    const wrong = await oc('login', SERVER, `--certificate-authority=${ca}`, '-u', 'dev', '-p', 'wrong');
    assert.notEqual(wrong.code, 0);
    const done = await oc('login', SERVER, `--certificate-authority=${ca}`, '-u', 'dev', '-p', PASSWORD);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.equal((await oc('whoami')).stdout.trim(), 'dev');
    const other = { kind: 'SubjectAccessReview', apiVersion: 'authorization.openshift.io/v1', verb: 'get' };
    const requested = await oc('auth', 'can-i', 'create', 'subjectaccessreviews.authorization.k8s.io');
    assert.equal(requested.stdout.trim(), 'no');
    const refused = await host.inside(OC, ['create', '-f', '-'], {
      env,
      input: JSON.stringify({ ...other, resource: 'pods', user: 'system:admin' }),
    });
    assert.match(refused.stderr, /cannot create resource "subjectaccessreviews"/);
    const token = (await oc('whoami', '-t')).stdout.trim();
    assert.match(token, /^sha256~/);
    const out = await oc('logout');
    assert.equal(out.code, 0, out.stdout + out.stderr);
    assert.equal((JSON.parse(await whoami(token)) as { code: number }).code, 401);
  });
});
