/**
 * Projects, access reviews and account secrets with the packaged executable in the profile okd. If HYPEREDGE_OC is set,
 * the same is done with `oc`.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually } from './harness.ts';

const BOOTSTRAP =
  'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd, domain: apps.lab.example}\n';
const START_MS = 180_000;
const REQUESTS = '/apis/project.openshift.io/v1/projectrequests';
const DEV = ['--as=dev', '--as-group=system:authenticated:oauth', '--as-group=system:authenticated'];
const oc = process.env['HYPEREDGE_OC'];

let appliance: Appliance;
let root: string;

before(
  async () => {
    root = await mkdtemp(join(tmpdir(), 'he-projects-'));
    await mkdir(join(root, 'etc/origin'), { recursive: true });
    await writeFile(join(root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP);
    appliance = await Appliance.create({ root });
    await appliance.start(START_MS);
  },
  { timeout: 200_000 },
);

after(async () => {
  await appliance?.stop();
  await rm(root, { recursive: true, force: true });
});

const asDev = (...args: string[]) => appliance.kubectl([...DEV, ...args]);

const post = (path: string, body: object) =>
  appliance.kubectl([...DEV, 'create', '--raw', path, '-f', '-'], { input: JSON.stringify(body) });

test('lets a logged-in user request and administer a project', async () => {
  const may = await asDev('get', '--raw', REQUESTS);
  assert.equal(may.code, 0, may.stderr);
  const body = { apiVersion: 'project.openshift.io/v1', kind: 'ProjectRequest', metadata: { name: 'shop' } };
  const made = await post(REQUESTS, body);
  assert.equal(made.code, 0, made.stderr);
  assert.match((await asDev('get', 'projects', '--no-headers')).stdout, /^shop +Active/);
  assert.equal((await appliance.kubectl(['--as=bob', 'get', 'projects'])).stdout, '');
  const granted = await asDev('-n', 'shop', 'create', 'rolebinding', 'view', '--clusterrole=view', '--user=bob');
  assert.equal(granted.code, 0, granted.stderr);
  const seen = await appliance.kubectl(['--as=bob', 'get', 'projects', '-o', 'name']);
  assert.equal(seen.stdout, 'project.project.openshift.io/shop\n');
  const refused = await post(REQUESTS, { ...body, metadata: { name: 'kube-x' } });
  assert.match(refused.stderr, /cannot request a project starting with "kube-"/);
});

test('lists the users and groups that have a permission', async () => {
  const review = {
    apiVersion: 'authorization.openshift.io/v1',
    kind: 'LocalResourceAccessReview',
    verb: 'get',
    resource: 'pods',
  };
  const path = '/apis/authorization.openshift.io/v1/namespaces/shop/localresourceaccessreviews';
  const { stdout, stderr } = await post(path, review);
  const { users, groups } = JSON.parse(stdout || `{"stderr":${JSON.stringify(stderr)}}`) as {
    users: string[];
    groups: string[];
  };
  assert.ok(users.includes('dev') && users.includes('bob'), stdout);
  assert.ok(groups.includes('system:cluster-readers'), stdout);
});

test('lists a valid token for service accounts', async () => {
  const token = await eventually('token of the account', 30_000, async () => {
    const names = await asDev('-n', 'shop', 'get', 'serviceaccount', 'default', '-o', 'jsonpath={.secrets[*].name}');
    const name = names.stdout.split(' ').find((each) => each.startsWith('default-token-'));
    if (name === undefined) return undefined;
    const data = await asDev('-n', 'shop', 'get', 'secret', name, '-o', 'jsonpath={.data.token}');
    return data.stdout === '' ? undefined : Buffer.from(data.stdout, 'base64').toString();
  });
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
  const path = '/apis/authentication.k8s.io/v1/tokenreviews';
  const answer = await appliance.must(['create', '--raw', path, '-f', '-'], { input: JSON.stringify(review) });
  const { status } = JSON.parse(answer) as { status: { user: { username?: string } } };
  assert.equal(status.user.username, 'system:serviceaccount:shop:default');
});

test('shows the settings of this cluster in its configuration', async () => {
  const value = (kind: string, path: string) =>
    appliance.must(['get', `${kind}.config.openshift.io`, 'cluster', '-o', `jsonpath={${path}}`]);
  assert.equal(await value('dnses', '.spec.baseDomain'), 'lab.example');
  assert.equal(await value('ingresses', '.spec.domain'), 'apps.lab.example');
  assert.equal(await value('networks', '.status.clusterNetwork[0].cidr'), '10.128.0.0/14');
  assert.equal(await value('networks', '.status.serviceNetwork[0]'), '172.30.0.0/16');
});

test('oc supports project requests, permissions, tokens and the cluster configuration', {
  skip: oc === undefined ? 'HYPEREDGE_OC names no oc' : false,
}, async () => {
  const run = (...args: string[]) => appliance.kubectl(args, { path: oc ?? 'oc' });
  const listed = await run(...DEV, 'get', 'projects');
  assert.match(listed.stdout, /^NAME +DISPLAY NAME +STATUS\nshop +Active\n$/, listed.stderr);
  const who = await run('adm', 'policy', 'who-can', 'get', 'pods', '-n', 'shop');
  assert.match(who.stdout, /Users: [\s\S]*dev/, who.stderr);
  const token = await run('serviceaccounts', 'get-token', 'default', '-n', 'shop');
  assert.match(token.stdout, /^eyJ/, token.stderr);
  const config = await run('serviceaccounts', 'create-kubeconfig', 'node-bootstrapper', '-n', 'openshift-infra');
  assert.match(config.stdout, /token: eyJ/, config.stderr);
});
