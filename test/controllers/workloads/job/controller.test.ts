import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Job, JobSpec } from '../../../../src/api/generated/batch/v1.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { run } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  await plane.addNode('n1');
});
after(() => plane.stop());

const namespace = 'default';
const job = (name: string, more: Partial<JobSpec> = {}): Job => ({
  metadata: { name, namespace },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'v1' }] } }, ...more },
});
const jobs = () => plane.of(resources.jobs);
const podsOf = async (name: string): Promise<Pod[]> =>
  (await plane.of(resources.pods).list({ namespace, labelSelector: `batch.kubernetes.io/job-name=${name}` })).items;
const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', plane.api.kubeconfig, ...args]);
const end = (pod: Pod, exitCode: number) => {
  const finishedAt = new Date().toISOString();
  const state = { terminated: { exitCode, finishedAt } };
  const status = {
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, state }],
  };
  const { name = '' } = pod.metadata ?? {};
  return plane.of(resources.pods).patch(name, namespace, 'strategic', { status }, { subresource: 'status' });
};
const running = (name: string, count: number): Promise<Pod[]> =>
  eventually(async () => {
    const pods = (await podsOf(name)).filter((pod) => pod.status?.phase === 'Running');
    return pods.length === count && pods;
  }, `${count} running pods of ${name}`);

test('completes a job of many pods, counts each pod once and removes all finalizers', async () => {
  await jobs().create(job('many', { completions: 12, parallelism: 4 }));
  const seen = new Set<string>();
  await eventually(
    async () => {
      for (const pod of await podsOf('many')) {
        if (pod.status?.phase !== 'Running') continue;
        seen.add(pod.metadata?.uid ?? '');
        await end(pod, 0);
      }
      return (await jobs().get('many', namespace)).status?.completionTime !== undefined;
    },
    'the end',
    20_000,
  );
  const wait = await kubectl('wait', '--for=condition=complete', 'job/many', '--timeout=5s');
  assert.equal(wait.code, 0, wait.stderr);
  const { status } = await jobs().get('many', namespace);
  assert.deepEqual([status?.succeeded, status?.failed, status?.active, seen.size], [12, undefined, undefined, 12]);
  assert.ok((await podsOf('many')).every((pod) => (pod.metadata?.finalizers ?? []).length === 0));
  const events = (await plane.of(resources.events).list({ namespace })).items;
  const about = events.filter((event) => event.involvedObject.name === 'many');
  assert.ok(about.some((event) => event.reason === 'Completed' && event.message === 'Job completed'));
  assert.ok(about.every((event) => event.source?.component === 'job-controller'));
});

test('deletes the pods of a failed job and reports the reason', async () => {
  await jobs().create(job('broken', { completions: 3, parallelism: 3, backoffLimit: 0 }));
  const [pod] = await running('broken', 3);
  assert.ok(pod);
  await end(pod, 1);
  const wait = await kubectl('wait', '--for=condition=failed', 'job/broken', '--timeout=10s');
  assert.equal(wait.code, 0, wait.stderr);
  const { status } = await jobs().get('broken', namespace);
  assert.equal(status?.failed, 3);
  assert.deepEqual(
    status?.conditions?.map((each) => each.type),
    ['FailureTarget', 'Failed'],
  );
  assert.deepEqual(
    (await podsOf('broken')).map((each) => each.metadata?.name),
    [pod.metadata?.name],
  );
});

test('suspends and resumes a job through the API', async () => {
  await jobs().create(job('paused', { completions: 2, parallelism: 2, suspend: true }));
  const conditions = async (): Promise<string> =>
    ((await jobs().get('paused', namespace)).status?.conditions ?? [])
      .map((each) => `${each.type}=${each.status}`)
      .join();
  await eventually(async () => (await conditions()) === 'Suspended=True', 'the suspension');
  assert.equal((await podsOf('paused')).length, 0);
  await jobs().patch('paused', namespace, 'merge', { spec: { suspend: false } });
  await running('paused', 2);
  await jobs().patch('paused', namespace, 'merge', { spec: { suspend: true } });
  await eventually(async () => (await podsOf('paused')).length === 0, 'no pods');
  await eventually(async () => (await conditions()) === 'Suspended=True', 'the second suspension');
  assert.equal((await jobs().get('paused', namespace)).status?.failed, undefined);
});

test('removes job finalizers from pods on background and foreground deletion, and from orphans', async () => {
  for (const cascade of ['background', 'foreground', 'orphan']) {
    const name = `gone-${cascade}`;
    await jobs().create(job(name, { completions: 2, parallelism: 2 }));
    await running(name, 2);
    const deleted = await kubectl('delete', `job/${name}`, `--cascade=${cascade}`, '--timeout=10s');
    assert.equal(deleted.code, 0, deleted.stderr);
    await eventually(async () => {
      const pods = await podsOf(name);
      if (cascade !== 'orphan') return pods.length === 0;
      return pods.length === 2 && pods.every((pod) => (pod.metadata?.finalizers ?? []).length === 0);
    }, `${cascade} deletion`);
  }
});

test('ignores a job that another controller manages', async () => {
  await jobs().create(job('foreign', { managedBy: 'example.com/other' }));
  await jobs().create(job('own', { managedBy: 'kubernetes.io/job-controller' }));
  await running('own', 1);
  assert.equal((await podsOf('foreign')).length, 0);
});

test('deletes a finished job and its pods after its TTL', async () => {
  await jobs().create(job('brief', { ttlSecondsAfterFinished: 1 }));
  const [pod] = await running('brief', 1);
  assert.ok(pod);
  await end(pod, 0);
  await eventually(async () => (await podsOf('brief')).length === 0, 'the pods to end');
  await eventually(
    async () => (await jobs().list({ namespace })).items.every((each) => each.metadata?.name !== 'brief'),
    'the job to end',
  );
});

test('adopts and counts a pod without an owner that the selector of the job matches', async () => {
  const labels = { adopt: 'me' };
  await plane.of(resources.pods).create({
    metadata: { name: 'stray', namespace, labels },
    spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'v1' }] },
  });
  await jobs().create({
    metadata: { name: 'adopter', namespace },
    spec: {
      manualSelector: true,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'v1' }] } },
    },
  });
  const stray = await eventually(async () => {
    const pod = await plane.of(resources.pods).get('stray', namespace);
    return (pod.metadata?.finalizers ?? []).length === 1 && pod.status?.phase === 'Running' && pod;
  }, 'the adoption');
  assert.equal(stray.metadata?.ownerReferences?.[0]?.name, 'adopter');
  await end(stray, 0);
  await eventually(async () => (await jobs().get('adopter', namespace)).status?.succeeded === 1, 'the count');
});
