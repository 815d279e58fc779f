/**
 * A host that loses power while the masters are unreachable: it starts with its last known state and reconciles later.
 */
import assert from 'node:assert/strict';
import { cp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually, sleep } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

let appliance: Appliance;
let serviceAtMs = 0;

before(async () => {
  appliance = await Appliance.create();
  await appliance.start();
  // Services are written to the disk after five seconds and then at most once a minute.
  await appliance.must(['apply', '-f', '-'], { input: SERVICE });
  serviceAtMs = Date.now();
  await importHelloImage(appliance, appliance.root);
});

after(async () => {
  await appliance?.stop();
});

const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: keeper, namespace: default}
spec: {selector: {app: keeper}, clusterIP: 172.30.77.7, ports: [{port: 80}]}
`;

const CONTENT = `
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: default}
stringData: {password: correct-horse}
---
apiVersion: v1
kind: Pod
metadata: {name: keeper, namespace: default, labels: {app: keeper}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${helloImage}
    command: [/bin/sh, -c, 'cat /keys/password && sleep 1000']
    volumeMounts: [{name: keys, mountPath: /keys}]
  volumes: [{name: keys, secret: {secretName: keys}}]
---
apiVersion: v1
kind: Pod
metadata: {name: leaver, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ${helloImage}, command: [sleep, '1000']}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: default}
spec: {podSelector: {matchLabels: {app: keeper}}, policyTypes: [Ingress]}
`;

/** Number of processes in a pod's containers. */
async function processesOf(uid: string): Promise<number> {
  let found = 0;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const [groups, command] = await Promise.all(
      ['cgroup', 'cmdline'].map((file) => readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '')),
    );
    if (groups?.replaceAll('_', '-').includes(uid) && command?.includes('sleep')) found += 1;
  }
  return found;
}

const runs = (uid: string) => async () => ((await processesOf(uid)) > 0 ? true : undefined);

test('runs pods with their secrets, services and policies on a rebooted host without an API server', async () => {
  const { root } = appliance;
  await appliance.must(['apply', '-f', '-'], { input: CONTENT });
  for (const name of ['keeper', 'leaver'])
    await appliance.must(['wait', `pod/${name}`, '--for=condition=Ready', '--timeout=60s']);
  const uidOf = (name: string): Promise<string> =>
    appliance.must(['get', 'pod', name, '-o', 'jsonpath={.metadata.uid}']);
  const keeper = await uidOf('keeper');
  const address = await appliance.must(['get', 'pod', 'keeper', '-o', 'jsonpath={.status.podIP}']);
  const leaver = await uidOf('leaver');
  const state = join(root, 'var/lib/origin/last-known');
  await eventually('the last known state is on the disk', 90_000, async () => {
    const names = await readdir(state);
    const wanted = ['pods', 'config-objects', 'tokens', 'node', 'services', 'endpoint-slices', 'network-policies'];
    if (!wanted.every((name) => names.includes(name))) return undefined;
    return (await stat(join(state, 'services'))).mtimeMs > serviceAtMs ? true : undefined;
  });
  await sleep(7_000);
  for (const name of await readdir(state)) {
    assert.equal((await stat(join(state, name))).mode & 0o777, 0o600, name);
    assert.doesNotMatch(await readFile(join(state, name), 'latin1'), /keeper|correct-horse|kubernetes/, name);
  }
  assert.equal((await stat(join(root, 'etc/origin/node/last-known.key'))).mode & 0o777, 0o600);

  // The pod is deleted while the kubelet is stopped and the control plane still runs.
  await appliance.halt('SIGKILL');
  await appliance.must(['delete', 'pod', 'leaver', '--force', '--grace-period=0']);
  const manifests = join(root, 'etc/origin/node/pods');
  const aside = join(root, 'manifests-aside');
  await cp(manifests, aside, { recursive: true });
  await appliance.powerCut();
  assert.deepEqual([await processesOf(keeper), await processesOf(leaver)], [0, 0]);
  await writeFile(
    join(root, 'etc/origin/bootstrap.yaml'),
    'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nroles: [node]\n',
  );

  const begin = performance.now();
  const before = appliance.output.length;
  appliance.launch();
  const reported = (): string => appliance.output.slice(before);
  await eventually('keeper runs again', 60_000, runs(keeper)).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${reported().slice(-6_000)}`);
  });
  const tookMs = Math.round(performance.now() - begin);
  await eventually('leaver runs again', 30_000, runs(leaver));
  assert.match(reported(), /API server unreachable: running the last known pods pods=2/);
  assert.doesNotMatch(reported(), /pod admitted before network policies are known/);
  const volume = join(root, 'var/lib/origin/openshift.local.volumes/pods', keeper, 'volumes/kubernetes.io~secret/keys');
  assert.equal(await readFile(join(volume, 'password'), 'utf8'), 'correct-horse');
  await eventually('rules of the services', 30_000, async () =>
    (await appliance.inside('nft', ['list', 'ruleset'])).stdout.includes('172.30.77.7') ? true : undefined,
  );
  const routes = await appliance.inside('ip', ['route', 'get', address]);
  assert.match(routes.stdout, / dev ve/, 'the pod has its former address, which the endpoints name');
  console.log(`last known pods run ${tookMs} ms after the start of the host process`);

  await cp(aside, manifests, { recursive: true });
  await eventually('the API server is back', 60_000, async () =>
    (await appliance.kubectl(['get', '--raw', '/readyz'])).stdout === 'ok' ? true : undefined,
  );
  await eventually('the pod that was deleted meanwhile ends', 30_000, async () =>
    (await processesOf(leaver)) === 0 ? true : undefined,
  );
  await appliance.must(['wait', 'pod/keeper', '--for=condition=Ready', '--timeout=60s']);
  await appliance.must(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=60s']);
  const status = JSON.parse(await appliance.must(['get', 'pod', 'keeper', '-o', 'json']));
  assert.equal(status.metadata.uid, keeper);
  assert.equal(status.status.containerStatuses[0].restartCount, 1);
  assert.equal(await processesOf(keeper), 1);
});
