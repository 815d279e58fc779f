/** Stateful sets, jobs and cron jobs with real containers and kubectl. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { idle, isReady, PodLab, shell } from './pods/lab.ts';

const LIMIT = { timeout: 120_000 };
let lab: PodLab;

before(
  async () => {
    lab = await PodLab.create();
  },
  { timeout: 90_000 },
);

after(() => lab?.stop(), { timeout: 90_000 });

const jobTemplate = (script: string) => ({
  spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers: [shell(script)] },
});
const field = (kind: string, name: string, path: string): Promise<string> =>
  lab.kubectl('get', kind, name, '-o', `jsonpath={${path}}`);

describe('workloads', () => {
  test('runs a stateful set with ordered start, stable names, update, rollback and scale-down', LIMIT, async () => {
    const set = (image: string): object => ({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db', namespace: 'default' },
      spec: {
        replicas: 3,
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: {
          metadata: { labels: { app: 'db' } },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [idle({ env: [{ name: 'VERSION', value: image }] })],
          },
        },
      },
    });
    await lab.apply(
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'db', namespace: 'default' },
        spec: { clusterIP: 'None', selector: { app: 'db' }, ports: [{ port: 80 }] },
      },
      set('one'),
    );
    await lab.kubectl('rollout', 'status', 'statefulset/db', '--timeout=60s');
    const started = ['db-0', 'db-1', 'db-2'].map((name) => Date.parse(lab.pod(name)?.status?.startTime ?? ''));
    assert.deepEqual(started, started.toSorted());
    assert.equal((await lab.exec('db-1', 'hostname')).trim(), 'db-1');
    assert.equal(lab.pod('db-2')?.metadata?.labels?.['apps.kubernetes.io/pod-index'], '2');
    const uids = ['db-0', 'db-1', 'db-2'].map((name) => lab.pod(name)?.metadata?.uid);
    await lab.apply(set('two'));
    await lab.kubectl('rollout', 'status', 'statefulset/db', '--timeout=60s');
    assert.equal((await lab.exec('db-0', 'sh', '-c', 'echo $VERSION')).trim(), 'two');
    assert.ok(['db-0', 'db-1', 'db-2'].every((name) => !uids.includes(lab.pod(name)?.metadata?.uid)));
    await lab.kubectl('rollout', 'undo', 'statefulset/db');
    await lab.kubectl('rollout', 'status', 'statefulset/db', '--timeout=60s');
    assert.equal((await lab.exec('db-2', 'sh', '-c', 'echo $VERSION')).trim(), 'one');
    await lab.kubectl('scale', 'statefulset/db', '--replicas=1');
    await lab.untilPods('one pod', () => (lab.podsOf('db-').length === 1 ? true : undefined));
    assert.ok(isReady(await lab.ready('db-0')));
    await lab.kubectl('delete', 'statefulset/db', 'service/db', '--wait=true', '--timeout=30s');
    await lab.untilPods('no pods', () => (lab.podsOf('db-').length === 0 ? true : undefined));
  });

  test('runs an indexed job of twenty pods, each with its index', LIMIT, async (context) => {
    const began = performance.now();
    await lab.apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'twenty', namespace: 'default' },
      spec: {
        completions: 20,
        parallelism: 20,
        completionMode: 'Indexed',
        template: jobTemplate('echo "$JOB_COMPLETION_INDEX on $(hostname)"'),
      },
    });
    await lab.kubectl('wait', '--for=condition=complete', 'job/twenty', '--timeout=90s');
    context.diagnostic(`complete after ${Math.round(performance.now() - began)} ms`);
    assert.equal(await field('job', 'twenty', '.status.completedIndexes'), '0-19');
    assert.equal(await field('job', 'twenty', '.status.succeeded'), '20');
    const pods = lab.podsOf('twenty-');
    assert.equal(pods.length, 20);
    const third = pods.find((pod) => pod.metadata?.name?.startsWith('twenty-3-') === true);
    assert.equal(await lab.logs(third?.metadata?.name ?? ''), '3 on twenty-3\n');
    await lab.kubectl('delete', 'job/twenty', '--timeout=30s');
    await lab.untilPods('no pods', () => (lab.podsOf('twenty-').length === 0 ? true : undefined));
  });

  test('retries a job up to its limit and ends the pods of a suspended job', LIMIT, async () => {
    await lab.apply(
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'fails', namespace: 'default' },
        spec: {
          backoffLimit: 3,
          podFailurePolicy: {
            rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } }],
          },
          template: jobTemplate('exit 42'),
        },
      },
      {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'pauses', namespace: 'default' },
        spec: { parallelism: 2, completions: 2, template: jobTemplate("trap 'exit 1' TERM; sleep 1000 & wait") },
      },
    );
    await lab.kubectl('wait', '--for=condition=failed', 'job/fails', '--timeout=60s');
    assert.match(await field('job', 'fails', '.status.conditions[?(@.type=="Failed")].reason'), /^PodFailurePolicy$/);
    await lab.untilPods('two pods', () => (lab.podsOf('pauses-').filter(isReady).length === 2 ? true : undefined));
    await lab.kubectl('patch', 'job', 'pauses', '-p', '{"spec":{"suspend":true}}');
    await lab.untilPods('no pods', () => (lab.podsOf('pauses-').length === 0 ? true : undefined));
    assert.equal(await field('job', 'pauses', '.status.failed'), '');
    await lab.kubectl('delete', 'job/fails', 'job/pauses', '--timeout=30s');
  });

  test('starts a cron job manually and on schedule', { timeout: 180_000 }, async () => {
    await lab.apply({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'tick', namespace: 'default' },
      spec: {
        schedule: '* * * * *',
        concurrencyPolicy: 'Forbid',
        jobTemplate: { spec: { template: jobTemplate('echo tock') } },
      },
    });
    await lab.kubectl('create', 'job', 'by-hand', '--from=cronjob/tick');
    await lab.kubectl('wait', '--for=condition=complete', 'job/by-hand', '--timeout=60s');
    assert.equal(await lab.logs('job/by-hand'), 'tock\n');
    await lab.untilPods('a pod of the clock', () => (lab.podsOf('tick-').length > 0 ? true : undefined), 75_000);
    await lab.kubectl('wait', '--for=jsonpath={.status.lastSuccessfulTime}', 'cronjob/tick', '--timeout=60s');
    const [job = ''] = (await lab.kubectl('get', 'jobs', '-o', 'name'))
      .split('\n')
      .filter((name) => /tick-\d+$/.test(name));
    await lab.kubectl('wait', '--for=condition=complete', job, '--timeout=60s');
    assert.match(await field('cronjob', 'tick', '.status.lastScheduleTime'), /:00Z$/);
    await lab.kubectl('delete', 'cronjob/tick', '--timeout=30s');
    await lab.untilPods('no pods', () =>
      lab.podsOf('tick-').length + lab.podsOf('by-hand').length === 0 ? true : undefined,
    );
  });
});
