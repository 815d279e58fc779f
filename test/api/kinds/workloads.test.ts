/** Inputs with the responses of upstream's current API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, created, type Document, kindNamed, texts } from './samples.ts';

type Fields = Record<string, unknown>;

const POD = { metadata: {}, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'i' }] } };

function job(spec: Fields = {}, status: Fields = {}): Document {
  const document = created('Job', (each) => {
    each['metadata'] = { name: 'j', namespace: 'ns', uid: 'u' };
    each['spec'] = { template: structuredClone(POD), ...spec };
  });
  document['status'] = status;
  return document;
}

function refused(spec: Fields, ...errors: string[]): void {
  const document = job(spec);
  const { strategy } = kindNamed('Job');
  assert.deepEqual(
    texts([...(strategy.validateCreate?.(document) ?? []), ...(strategy.validate?.(document) ?? [])]),
    errors,
  );
}

const indexed = { completionMode: 'Indexed', completions: 5, parallelism: 5 };

test('rejects invalid jobs', () => {
  refused({});
  refused({ ...indexed, backoffLimitPerIndex: 1, maxFailedIndexes: 5 });
  refused(
    { ...indexed, backoffLimitPerIndex: 1, maxFailedIndexes: 6 },
    'spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions',
  );
  refused(
    { ...indexed, completions: 100_001, backoffLimitPerIndex: 1 },
    'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
  );
  refused(
    { ...indexed, completions: 100_001, parallelism: 10_001, backoffLimitPerIndex: 1, maxFailedIndexes: 1 },
    'spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index',
  );
  refused(
    { podFailurePolicy: { rules: [{}, { action: 'FailIndex', onExitCodes: { operator: '', values: [1] } }] } },
    'spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
    'spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required',
    'spec.podFailurePolicy.rules[1].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
    'spec.podFailurePolicy.rules[1].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
  );
  refused(
    { ...indexed, successPolicy: { rules: [] } },
    'spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified',
  );
  refused({ ...indexed, successPolicy: { rules: [{ succeededCount: 0 }, { succeededIndexes: '0-2,4' }] } });
  const other = job();
  at(other, 'spec', 'template', 'metadata')['labels'] = { 'job-name': 'x', a: 'b' };
  at(other, 'spec')['selector'] = { matchLabels: { a: 'b' } };
  const path = 'spec.template.metadata.labels';
  assert.deepEqual(texts(kindNamed('Job').strategy.validateCreate?.(other)), [
    `${path}[batch.kubernetes.io/controller-uid]: Required value: must be 'u'`,
    `${path}[controller-uid]: Required value: must be 'u'`,
    `${path}[batch.kubernetes.io/job-name]: Required value: must be 'j'`,
    `${path}[job-name]: Invalid value: {"job-name":"x","a":"b"}: must be 'j'`,
    'spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated',
  ]);
});

test('validates changes of a job', () => {
  const changed = (spec: Fields, change: (spec: Record<string, unknown>) => void, status: Fields = {}): string[] => {
    const old = Object.assign(job(spec), { status });
    const next = structuredClone(old);
    change(at(next, 'spec'));
    return texts(kindNamed('Job').strategy.validateUpdate?.(next, old));
  };
  const grown = (completions: number, parallelism: number): string[] =>
    changed(indexed, (spec) => Object.assign(spec, { completions, parallelism }));
  assert.deepEqual(grown(7, 7), []);
  assert.deepEqual(grown(7, 5), [
    'spec.completions: Invalid value: 7: can only be modified in tandem with spec.parallelism',
  ]);
  const nodes = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } };
  const placed = (affinity: Fields): number =>
    changed({ suspend: true }, (spec) => (at(spec, 'template', 'spec')['affinity'] = affinity)).length;
  assert.equal(placed({ nodeAffinity: nodes }), 0);
  assert.equal(placed({ nodeAffinity: nodes, podAffinity: {} }), 1);
  const resized = (spec: Fields, status: Fields): number =>
    changed(
      spec,
      (next) => {
        at(next, 'template', 'spec', 'containers', 0)['resources'] = { requests: { cpu: '2' } };
      },
      status,
    ).length;
  const startTime = '2030-01-01T00:00:00Z';
  const conditions = [{ type: 'Suspended', status: 'True' }];
  assert.equal(resized({ suspend: true }, {}), 0);
  assert.equal(resized({ suspend: true }, { startTime, conditions }), 0);
  assert.equal(resized({ suspend: true }, { startTime }), 1, 'the controller has not ended its pods yet');
  assert.equal(resized({ suspend: true }, { conditions, active: 1 }), 1);
  assert.equal(resized({ suspend: false }, {}), 1);
});

const is = (...types: string[]): Fields[] => types.map((type) => ({ type, status: 'True' }));

test('validates the status of a job', () => {
  const START = '2030-01-01T00:00:00Z';
  const LATER = '2030-01-01T00:00:01Z';
  const { statusStrategy } = kindNamed('Job');
  const becomes = (next: Fields, old: Fields, spec: Fields, ...errors: string[]): void => {
    assert.deepEqual(texts(statusStrategy?.validateUpdate?.(job(spec, next), job(spec, old))), errors);
  };
  const done = { startTime: START, completionTime: LATER, conditions: is('Complete') };
  becomes(done, { startTime: START, active: 1 }, {});
  becomes(
    { conditions: is('Complete', 'Failed'), active: 1 },
    {},
    {},
    'status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions',
    'status.completionTime: Required value: completionTime is required for Complete jobs',
    'status.active: Invalid value: 1: active>0 is invalid for finished job',
    'status.startTime: Required value: startTime is required for finished job',
  );
  becomes(
    { ...done, conditions: [], completionTime: '2029-01-01T00:00:00Z' },
    done,
    {},
    'status.conditions: Invalid value: cannot disable the terminal Complete=True condition',
    'status.completionTime: Invalid value: "2029-01-01T00:00:00Z": cannot set completionTime when there is no Complete=True condition',
    'status.completionTime: Invalid value: "2029-01-01T00:00:00Z": completionTime cannot be mutated',
    'status.completionTime: Invalid value: "2029-01-01T00:00:00Z": completionTime cannot be set before startTime',
  );
  becomes(
    {},
    { startTime: START },
    {},
    'status.startTime: Required value: startTime cannot be removed for unsuspended job',
  );
  becomes({}, { startTime: START }, { suspend: true });
  becomes(
    { completedIndexes: '0-2', failedIndexes: '2,9' },
    {},
    { ...indexed, backoffLimitPerIndex: 1 },
    'status.failedIndexes: Invalid value: "2,9": error parsing failedIndexes: too large index: "9"',
  );
  becomes(
    { completedIndexes: '0-2', failedIndexes: '2,4' },
    {},
    { ...indexed, backoffLimitPerIndex: 1 },
    'status.failedIndexes: Invalid value: "2,4": failedIndexes and completedIndexes overlap at index: 2',
  );
  becomes(
    { completedIndexes: '0', failedIndexes: '' },
    {},
    {},
    'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
    'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
  );
  // Controllers that predate tracking with finalizers may reduce the counters.
  becomes({ failed: 1 }, { failed: 2 }, {});
  const uncounted = { uncountedTerminatedPods: {} };
  becomes(
    { failed: 1, ready: 1, ...uncounted },
    { failed: 2, ...uncounted },
    {},
    'status.failed: Invalid value: 1: cannot decrease the failed counter',
    'status.ready: Invalid value: 1: cannot set more ready pods than active',
  );
  becomes(
    { ...done, ...uncounted },
    { startTime: START },
    {},
    'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
  );
});

test('permits a time zone in the schedule of an existing cron job', () => {
  const { strategy } = kindNamed('CronJob');
  const cron = (schedule: string, timeZone?: string): Document =>
    created('CronJob', (each) => {
      const spec = at(each, 'spec');
      spec['schedule'] = schedule;
      if (timeZone === undefined) delete spec['timeZone'];
      else spec['timeZone'] = timeZone;
    });
  const zoned = cron('TZ=UTC * * * * *');
  assert.deepEqual(texts(strategy.validateCreate?.(zoned)), [
    'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
  ]);
  assert.deepEqual(texts(strategy.validateUpdate?.(zoned, zoned)), []);
  assert.deepEqual(texts(strategy.validateUpdate?.(cron('TZ=UTC * * * * *', 'UTC'), zoned)), [
    'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use both timeZone field and TZ or CRON_TZ in schedule',
  ]);
  assert.deepEqual(strategy.warnings?.(zoned, zoned), [
    'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details',
  ]);
  const longName = cron('* * * * *');
  longName.metadata['name'] = 'x'.repeat(53);
  assert.deepEqual(texts(strategy.validateCreate?.(longName)).length, 1);
  assert.deepEqual(texts(strategy.validateUpdate?.(longName, longName)), []);
});

test('warns about names and templates of workloads', () => {
  const warned = (kind: string, old?: 'same' | 'new'): string[] => {
    const document = created(kind, (each) => {
      each.metadata['name'] = 'a.b';
      const template = at(each, 'spec', 'template', 'spec');
      template['containers'] = [{ name: 'main', image: 'i', env: ['1', '2'].map((value) => ({ name: 'A', value })) }];
      template['initContainers'] = [];
      template['topologySpreadConstraints'] = [];
    });
    const before = structuredClone(document);
    if (old === 'new') document.metadata['generation'] = 2;
    return kindNamed(kind).strategy.warnings?.(document, old === undefined ? undefined : before) ?? [];
  };
  const twice =
    'spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply';
  for (const kind of ['Deployment', 'ReplicaSet', 'ReplicationController', 'Job']) {
    const [name = '', ...others] = warned(kind);
    assert.match(
      name,
      /^metadata\.name: this is used in Pod names and hostnames, .* a DNS label is recommended: \[.*must not contain dots/,
    );
    assert.deepEqual(others, [twice], kind);
    assert.deepEqual(warned(kind, 'new'), [twice], kind);
    assert.deepEqual(warned(kind, 'same'), [], kind);
  }
  for (const kind of ['DaemonSet', 'StatefulSet']) assert.deepEqual(warned(kind), [twice], kind);
});

test('validates collision counts and maxUnavailable', () => {
  for (const kind of ['Deployment', 'DaemonSet', 'StatefulSet']) {
    const old = created(kind);
    const next = structuredClone(old);
    Object.assign(at(old, 'status'), { collisionCount: 2 });
    Object.assign(at(next, 'status'), { collisionCount: 1, observedGeneration: -1 });
    assert.deepEqual(texts(kindNamed(kind).statusStrategy?.validateUpdate?.(next, old)), [
      'status.observedGeneration: Invalid value: -1: must be greater than or equal to 0',
      'status.collisionCount: Invalid value: 1: cannot be decremented',
    ]);
  }
  const missing = (maxUnavailable: number | string): string[] => {
    const set = created('StatefulSet', (each) => {
      at(each, 'spec')['updateStrategy'] = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable } };
    });
    return texts(kindNamed('StatefulSet').strategy.validate?.(set));
  };
  const path = 'spec.updateStrategy.rollingUpdate.maxUnavailable';
  assert.deepEqual(missing(0), [`${path}: Invalid value: 0: cannot be 0`]);
  assert.deepEqual(missing('101%'), [`${path}: Invalid value: "101%": must not be greater than 100%`]);
});
