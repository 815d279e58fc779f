/**
 * Security context constraints in the profile okd with real containers. If HYPEREDGE_OC is set, `oc` is used where
 * possible.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Appliance, eventually, type Ran } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

const BOOTSTRAP = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd}\n';
const CUSTOM = {
  apiVersion: 'security.openshift.io/v1',
  kind: 'SecurityContextConstraints',
  metadata: { name: 'custom' },
  runAsUser: { type: 'MustRunAs', uid: 5 },
  seLinuxContext: { type: 'RunAsAny' },
};

let appliance: Appliance;
let scratch: string;
const START_MS = 180_000;
const POD_MS = 60_000;

/** Runs kubectl as a plain user of system:authenticated. */
const asDev = (...args: string[]): Promise<Ran> => appliance.kubectl(['--as=dev', '-n', 'shop', ...args]);

async function podAs(name: string, more: object = {}, securityContext?: object): Promise<Ran> {
  const container = {
    name: 'c',
    image: helloImage,
    command: ['/bin/sh', '-c', 'id; grep -E "^(CapBnd|NoNewPrivs|Seccomp)" /proc/self/status; sleep 3600'],
    ...(securityContext === undefined ? {} : { securityContext }),
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 0, containers: [container], ...more },
  };
  return appliance.kubectl(['--as=dev', '-n', 'shop', 'create', '-f', '-'], { input: JSON.stringify(pod) });
}

const logOf = (name: string): Promise<string> =>
  eventually(`log of ${name}`, POD_MS, async () => {
    const { stdout } = await asDev('logs', name);
    return stdout.includes('Seccomp') ? stdout : undefined;
  });

const annotation = (kind: string, name: string, key: string): Promise<string> =>
  appliance.must([
    '-n',
    'shop',
    'get',
    kind,
    name,
    '-o',
    `jsonpath={.metadata.annotations.${key.replaceAll('.', '\\.')}}`,
  ]);

before(
  async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-scc-'));
    appliance = await Appliance.create();
    await mkdir(join(appliance.root, 'etc/origin'), { recursive: true });
    await writeFile(join(appliance.root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP);
    await appliance.start(START_MS);
    await importHelloImage(appliance, scratch);
    await appliance.must(['create', 'namespace', 'shop']);
    await appliance.must(['-n', 'shop', 'create', 'rolebinding', 'dev', '--clusterrole=edit', '--user=dev']);
    await appliance.must(['-n', 'shop', 'create', 'serviceaccount', 'robot']);
    await eventually('default service account', POD_MS, async () =>
      (await asDev('get', 'serviceaccount', 'default')).code === 0 ? true : undefined,
    );
  },
  { timeout: START_MS + POD_MS },
);

after(
  async () => {
    await appliance?.stop();
    await rm(scratch, { recursive: true, force: true });
  },
  { timeout: 90_000 },
);

describe('security context constraints with containers', { concurrency: false }, () => {
  test('the control plane runs and its pods are shown under security context constraints', {
    timeout: POD_MS,
  }, async () => {
    const pods = await eventually('mirror pods', POD_MS, async () => {
      const text = await appliance.must(['-n', 'kube-system', 'get', 'pods', '--no-headers']);
      return /Running/.test(text) ? text : undefined;
    });
    assert.doesNotMatch(pods, /Error|CrashLoop|Failed/);
  });

  test('a pod of an ordinary user runs with the user ID of its namespace', {
    timeout: POD_MS,
  }, async () => {
    const made = await podAs('plain');
    assert.equal(made.code, 0, made.stderr);
    const range = await appliance.must([
      'get',
      'namespace',
      'shop',
      '-o',
      'jsonpath={.metadata.annotations.openshift\\.io/sa\\.scc\\.uid-range}',
    ]);
    const uid = /^(\d{10})\/10000$/.exec(range)?.[1];
    assert.ok(uid !== undefined && Number(uid) >= 1_000_000_000, range);
    const log = await logOf('plain');
    assert.match(log, new RegExp(`uid=${uid} gid=0.*groups=.*${uid}`));
    assert.match(log, /CapBnd:\s+0{16}\n/);
    assert.match(log, /NoNewPrivs:\s+1\n/);
    assert.match(log, /Seccomp:\s+2\n/);
    assert.equal(await annotation('pod', 'plain', 'openshift.io/scc'), 'restricted-v2');
  });

  test('security context constraints apply to pods of a Deployment', { timeout: POD_MS }, async () => {
    await asDev('create', 'deployment', 'web', `--image=${helloImage}`, '--', '/bin/sleep', '3600');
    await eventually('pod of the Deployment', POD_MS, async () => {
      const { stdout } = await asDev('get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[0].status.phase}');
      return stdout === 'Running' ? true : undefined;
    });
    const { stdout } = await asDev('exec', 'deploy/web', '--', '/bin/id', '-u');
    assert.match(stdout, /^1000\d{6}\n$/);
    await asDev('delete', 'deployment', 'web');
    await asDev('delete', 'pods', '-l', 'app=web', '--force', '--grace-period=0');
  });

  test('rejects a privileged pod and a pod that runs as root with the reason of every constraint', {
    timeout: POD_MS,
  }, async () => {
    for (const [name, context] of [
      ['root', { runAsUser: 0 }],
      ['privileged', { privileged: true }],
    ] as const) {
      const refused = await podAs(name, {}, context);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /unable to validate against any security context constraint: \[provider "anyuid": /);
      assert.match(refused.stderr, /provider restricted-v2: \.containers\[0\]\./);
    }
  });

  test('a pod may run as root if its service account may use the constraint anyuid', {
    timeout: POD_MS,
  }, async () => {
    const oc = process.env['HYPEREDGE_OC'];
    if (oc === undefined)
      // The request is that of `oc adm policy add-scc-to-user anyuid -z robot`.
      await appliance.must([
        ...['-n', 'shop', 'create', 'rolebinding', 'system:openshift:scc:anyuid'],
        ...['--clusterrole=system:openshift:scc:anyuid', '--serviceaccount=shop:robot'],
      ]);
    else
      await appliance.must(['-n', 'shop', 'adm', 'policy', 'add-scc-to-user', 'anyuid', '-z', 'robot'], { path: oc });
    const made = await podAs('rooted', { serviceAccountName: 'robot' }, { runAsUser: 0 });
    assert.equal(made.code, 0, made.stderr);
    assert.match(await logOf('rooted'), /uid=0/);
    assert.equal(await annotation('pod', 'rooted', 'openshift.io/scc'), 'anyuid');
  });

  test('rejects all pods while all constraints are deleted; a restart restores the constraints', {
    timeout: START_MS,
  }, async () => {
    await appliance.must(['delete', 'securitycontextconstraints', '--all']);
    const refused = await podAs('late');
    assert.match(refused.stderr, /no SecurityContextConstraints found in cluster/);
    assert.match(await appliance.must(['-n', 'shop', 'get', 'pod', 'plain', '--no-headers']), /Running/);
    await appliance.halt('SIGTERM');
    await appliance.start(START_MS);
    const names = await appliance.must(['get', 'scc', '-o', 'name']);
    assert.equal(names.trim().split('\n').length, 10);
    const made = await eventually('pod after the restart', POD_MS, async () => {
      const answer = await podAs('late');
      return answer.code === 0 ? answer : undefined;
    });
    assert.equal(made.code, 0, made.stderr);
  });

  test('profile kubernetes does not enforce security context constraints, and keeps all stored objects', {
    timeout: START_MS,
  }, async () => {
    await appliance.must(['create', '-f', '-'], { input: JSON.stringify(CUSTOM) });
    await appliance.halt('SIGTERM');
    await writeFile(join(appliance.root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP.replace('okd', 'kubernetes'));
    await appliance.start(START_MS);
    const made = await podAs('free', {}, { privileged: true });
    assert.equal(made.code, 0, made.stderr);
    assert.match(await appliance.must(['get', 'scc', 'custom']), /custom +false +<no value> +RunAsAny +MustRunAs/);
    assert.equal(await annotation('pod', 'rooted', 'openshift.io/scc'), 'anyuid');
  });
});
