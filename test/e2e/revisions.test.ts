/**
 * Revisions of the control plane with the packaged executable: forced, rejected by the API server, and without an API
 * server.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Appliance, eventually, executable } from './harness.ts';

const START_MS = 180_000;
const FALL_BACK_MS = 60_000;

interface Status {
  readonly latestAvailableRevision?: number;
  readonly latestAvailableRevisionReason?: string;
  readonly nodeStatuses?: readonly {
    readonly nodeName: string;
    readonly currentRevision?: number;
    readonly targetRevision?: number;
    readonly lastFailedRevision?: number;
    readonly lastFailedReason?: string;
    readonly lastFailedRevisionErrors?: readonly string[];
  }[];
}

let appliance: Appliance;
before(
  async () => {
    appliance = await Appliance.create();
    await appliance.start(START_MS);
  },
  { timeout: 200_000 },
);

after(() => appliance?.stop());

const config = (): string => join(appliance.root, 'etc/origin/master/master-config.yaml');

async function status(kind = 'kubeapiserver'): Promise<Status> {
  const { code, stdout, stderr } = await appliance.kubectl(['get', kind, 'cluster', '-o', 'jsonpath={.status}']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Status;
}

/** Resolves when the host runs the newest revision, which must be at least `revision`. */
const atRevision = (revision: number, kind?: string): Promise<Status> =>
  eventually(`revision ${revision}`, 60_000, async () => {
    const now = await status(kind);
    const node = now.nodeStatuses?.[0];
    const isReached = (now.latestAvailableRevision ?? 0) >= revision && node?.targetRevision === undefined;
    return isReached && node?.currentRevision === now.latestAvailableRevision ? now : undefined;
  });

test('a forced revision of the control plane is installed and shown', { timeout: 240_000 }, async () => {
  await atRevision(1);
  const patch = ['patch', 'kubeapiserver', 'cluster', '--type=merge', '-p'];
  const { code, stderr } = await appliance.kubectl([...patch, '{"spec":{"forceRedeploymentReason":"x"}}']);
  assert.equal(code, 0, stderr);
  const { latestAvailableRevisionReason, nodeStatuses } = await atRevision(2);
  assert.equal(latestAvailableRevisionReason, 'spec changed: spec.forceRedeploymentReason');
  const node = nodeStatuses?.[0]?.nodeName ?? '';
  const pods = await eventually('pods of the revision', 20_000, async () => {
    const { stdout } = await appliance.kubectl([
      '-n',
      'openshift-kube-apiserver',
      'get',
      'pods',
      '-o',
      'wide',
      '--no-headers',
    ]);
    return stdout
      .trim()
      .split('\n')
      .filter((line) => line.includes('Completed') && line.includes(node)).length === 2
      ? stdout
      : undefined;
  });
  assert.match(pods, new RegExp(`^installer-2-${node} +0/1 +Completed`, 'm'));
  assert.match(pods, new RegExp(`^revision-pruner-2-${node} +0/1 +Completed`, 'm'));
  const restarts = await appliance.kubectl([
    '-n',
    'kube-system',
    'get',
    'pods',
    '-o',
    'jsonpath={range .items[*]}{.metadata.name}={.status.containerStatuses[0].restartCount} {end}',
  ]);
  assert.match(restarts.stdout, new RegExp(`master-api-${node}=1 master-controllers-${node}=0 master-etcd-${node}=0`));
  const described = await appliance.kubectl(['describe', 'kubeapiserver', 'cluster']);
  assert.match(described.stdout, /Latest Available Revision: +2/);
  const maps = await appliance.kubectl(['-n', 'openshift-kube-apiserver', 'get', 'configmaps', '-o', 'name']);
  assert.match(maps.stdout, /revision-status-1\n.*revision-status-2\n/);
});

test('restores the last good revision after the API server rejects a flag', { timeout: 240_000 }, async () => {
  const began = performance.now();
  const overrides = {
    unsupportedConfigOverrides: { apiServerArguments: { 'admission-control-config-file': ['missing.yaml'] } },
  };
  const { code, stderr } = await appliance.kubectl([
    'patch',
    'kubeapiserver',
    'cluster',
    '--type=merge',
    '-p',
    JSON.stringify({ spec: overrides }),
  ]);
  assert.equal(code, 0, stderr);
  const failed = await eventually('the failed revision', FALL_BACK_MS + 10_000, async () => {
    const now = await status();
    return now.nodeStatuses?.[0]?.lastFailedRevision === 3 ? now : undefined;
  });
  assert.ok(performance.now() - began < FALL_BACK_MS, `${performance.now() - began} ms`);
  const node = failed.nodeStatuses?.[0];
  assert.equal(node?.currentRevision, 2);
  assert.equal(node?.lastFailedReason, 'OperandFailedFallback');
  assert.match(node?.lastFailedRevisionErrors?.join() ?? '', /missing\.yaml/);
  const undo = { spec: { unsupportedConfigOverrides: null } };
  await appliance.kubectl(['patch', 'kubeapiserver', 'cluster', '--type=merge', '-p', JSON.stringify(undo)]);
  const good = await atRevision(4);
  assert.equal(good.nodeStatuses?.[0]?.lastFailedRevision, undefined);
});

test('restores the last good copy of a damaged file without an API server', { timeout: 240_000 }, async () => {
  const text = await readFile(config(), 'utf8');
  await writeFile(config(), `${text}\nkubernetesMasterConfig: [`);
  const began = performance.now();
  // An administrator restarts the component with a file that it cannot read.
  const restart = await appliance.inside(executable, ['master-restart', 'api', '--root', appliance.root]);
  assert.equal(restart.code, 1, restart.stdout);
  const failure = /api: revision (\d+) failed and revision 4 runs: .+; correct the files in .+ kube-apiserver 4$/m;
  assert.match(restart.stderr, failure);
  assert.doesNotMatch(restart.stdout, /restarted/);
  for (const command of [['status'], ['master-logs', 'api', '--tail', '1']]) {
    const shown = await appliance.inside(executable, [...command, '--root', appliance.root]);
    assert.equal(shown.code, 1, `${command[0]}: ${shown.stdout}`);
    assert.match(shown.stderr, failure, command[0]);
  }
  const answers = (): Promise<boolean> => appliance.kubectl(['get', '--raw', '/readyz']).then(({ code }) => code === 0);
  await eventually('the API server answers again', FALL_BACK_MS, async () => ((await answers()) ? true : undefined));
  assert.ok(performance.now() - began < FALL_BACK_MS, `${performance.now() - began} ms`);
  assert.match(await readFile(config(), 'utf8'), /kubernetesMasterConfig: \[$/, 'the edited file is kept');
  const failed = await eventually('the failure is published', 30_000, async () => {
    const { nodeStatuses } = await status();
    return (nodeStatuses?.[0]?.lastFailedRevision ?? 0) > 4 ? nodeStatuses?.[0] : undefined;
  });
  assert.equal(failed.currentRevision, 4);
  await writeFile(config(), text);
  await atRevision(6);
  const repaired = await appliance.inside(executable, ['master-restart', 'api', '--root', appliance.root]);
  assert.deepEqual([repaired.code, repaired.stdout], [0, 'api restarted\n'], repaired.stderr);
  const shown = await appliance.inside(executable, ['status', '--root', appliance.root]);
  assert.deepEqual([shown.code, shown.stderr], [0, '']);
  assert.match(shown.stdout, /^node \S+ \(\S+\): Ready\n/);
});
