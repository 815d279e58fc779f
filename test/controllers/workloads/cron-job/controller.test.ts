import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { CronJobSpec, Job } from '../../../../src/api/generated/batch/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { run } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
});
after(() => plane.stop());

const namespace = 'default';
const create = (name: string, spec: Partial<CronJobSpec>) =>
  plane.of(resources.cronJobs).create({
    metadata: { name, namespace },
    spec: {
      schedule: '@every 1s',
      jobTemplate: {
        spec: {
          suspend: true,
          template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'v1' }] } },
        },
      },
      ...spec,
    },
  });
const jobsOf = async (owner: string): Promise<Job[]> =>
  (await plane.of(resources.jobs).list({ namespace })).items
    .filter((job) => job.metadata?.ownerReferences?.[0]?.name === owner)
    .sort((a, b) => Number(a.metadata?.resourceVersion) - Number(b.metadata?.resourceVersion));
const statusOf = async (name: string) => (await plane.of(resources.cronJobs).get(name, namespace)).status;
const finish = async (name: string): Promise<void> => {
  const now = `${new Date().toISOString().slice(0, 19)}Z`;
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) => ({ type, status: 'True' }));
  await plane
    .of(resources.jobs)
    .patch(
      name,
      namespace,
      'strategic',
      { status: { startTime: now, completionTime: now, conditions } },
      { subresource: 'status' },
    );
};

test('starts a job on time and only once per minute, and records its success', async () => {
  await create('calm', { concurrencyPolicy: 'Forbid' });
  const [first] = await eventually(async () => {
    const jobs = await jobsOf('calm');
    return jobs.length === 1 && jobs;
  }, 'the first job');
  const name = first?.metadata?.name ?? '';
  await eventually(async () => (await statusOf('calm'))?.active?.[0]?.name === name, 'the status');
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  assert.equal((await jobsOf('calm')).length, 1);
  await finish(name);
  await eventually(async () => {
    const status = await statusOf('calm');
    return status?.lastSuccessfulTime !== undefined && status.active?.every((each) => each.name !== name) !== false;
  }, 'the success');
  await plane.of(resources.cronJobs).patch('calm', namespace, 'merge', { spec: { suspend: true } });
});

test('owns a manually created job, excludes it from the status and deletes it by the history limit', async () => {
  await create('manual', { schedule: '0 0 1 1 *', successfulJobsHistoryLimit: 1 });
  const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', plane.api.kubeconfig, ...args]);
  for (const name of ['one', 'two']) {
    const made = await kubectl('create', 'job', name, '--from=cronjob/manual');
    assert.equal(made.code, 0, made.stderr);
    await finish(name);
  }
  await eventually(async () => (await jobsOf('manual')).length === 1, 'the clean-up');
  assert.equal((await statusOf('manual'))?.active, undefined);
});

test('deletes the jobs of a deleted cron job', async () => {
  await create('brief', { concurrencyPolicy: 'Forbid' });
  await eventually(async () => (await jobsOf('brief')).length === 1, 'a job');
  await plane.of(resources.cronJobs).delete('brief', namespace);
  await eventually(async () => (await jobsOf('brief')).length === 0, 'the end of its jobs');
});
