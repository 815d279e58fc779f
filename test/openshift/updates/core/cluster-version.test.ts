import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostUpdate, WantedUpdate } from '../../../../src/api/kinds/nodes/nodes/host-report.ts';
import type { ClusterOperator, ClusterVersion } from '../../../../src/openshift/operators/kinds/config/types.ts';
import {
  type GivenUp,
  type KnownRelease,
  planVersion,
  type RolloutHost,
  type VersionPlan,
} from '../../../../src/openshift/updates/core/index.ts';

const NOW = Date.UTC(2026, 0, 1);
const release = (version: string, change: Partial<KnownRelease> = {}): KnownRelease => ({
  version,
  kubernetes: 'v1.36.0',
  channels: [],
  architectures: ['x64'],
  manifest: version.replaceAll('.', '').padEnd(64, '0'),
  image: `hyperedge.dev/release@sha256:${version}`,
  ...change,
});

const confirmed = ({ id, version }: WantedUpdate): HostUpdate => ({ id, version, state: 'Done', message: '' });

/** Simulates a cluster whose hosts follow requests, unless they are broken. */
class Cluster {
  object: ClusterVersion = {
    metadata: { name: 'version', generation: 1 },
    spec: { clusterID: 'x', channel: 'stable' },
  };
  releases: KnownRelease[] = [];
  operators: ClusterOperator[] = [];
  givenUp: GivenUp | undefined;
  hosts: RolloutHost[];
  readonly requests: string[] = [];
  nowMs = NOW;

  constructor(names: readonly string[] = ['m1', 'm2', 'm3', 'w1']) {
    this.hosts = names.map((name, index) => ({
      name,
      master: name.startsWith('m'),
      leadsStore: name === 'm1',
      healthy: true,
      silent: false,
      fault: '',
      version: '0.1.0',
      zone: '',
      createdMs: index,
      paused: false,
      wanted: undefined,
      update: undefined,
      underWayMs: 0,
    }));
  }

  want(version: string, force = false): void {
    const generation = (this.object.metadata?.generation ?? 1) + 1;
    const spec = { clusterID: 'x', channel: 'stable', desiredUpdate: { version, force } };
    this.object = { ...this.object, metadata: { ...this.object.metadata, generation }, spec };
  }

  clear(): void {
    const generation = (this.object.metadata?.generation ?? 1) + 1;
    this.object = {
      ...this.object,
      metadata: { ...this.object.metadata, generation },
      spec: { clusterID: 'x', channel: 'stable' },
    };
  }

  change(name: string, change: Partial<RolloutHost>): void {
    this.hosts = this.hosts.map((host) => (host.name === name ? { ...host, ...change } : host));
  }

  plan(): VersionPlan {
    this.nowMs += 1_000;
    const plan = planVersion({
      object: this.object,
      givenUp: this.givenUp,
      hosts: this.hosts,
      architectures: ['x64'],
      operators: this.operators,
      releases: this.releases,
      own: { version: '0.1.0', kubernetes: 'v1.36.0' },
      nowMs: this.nowMs,
    });
    // The API server removes nulls.
    const stored = JSON.stringify(plan.status, (_, value) => (value === null ? undefined : value));
    this.object = { ...this.object, status: JSON.parse(stored) };
    this.givenUp = plan.givenUp;
    return plan;
  }

  /** Runs until no further request is made. The `broken` host reports a failure of that version. */
  run(broken?: { readonly host: string; readonly version: string }): VersionPlan {
    for (let round = 0; round < 50; round++) {
      const plan = this.plan();
      if (plan.hostRequest === undefined) {
        if (plan.updatingTo === undefined) return this.plan();
        continue;
      }
      const { host, wanted } = plan.hostRequest;
      this.requests.push(`${host} ${wanted.version}`);
      const fails = broken?.host === host && broken.version === wanted.version;
      this.change(host, {
        wanted,
        ...(fails ? { update: failure(wanted) } : { version: wanted.version, update: confirmed(wanted) }),
      });
    }
    throw new Error('does not end');
  }

  condition(type: string): { status: string; reason?: string; message?: string } {
    const found = this.object.status?.conditions?.find((each) => each.type === type);
    assert.ok(found, type);
    return found;
  }

  get history(): string[] {
    return (this.object.status?.history ?? []).map(({ version, state }) => `${version} ${state}`);
  }
}

const failure = ({ id, version }: WantedUpdate): HostUpdate => ({
  id,
  version,
  state: 'Failed',
  message: 'not healthy',
});

test('reports the version of a new cluster', () => {
  const cluster = new Cluster();
  cluster.plan();
  assert.deepEqual(cluster.history, ['0.1.0 Completed']);
  assert.equal(cluster.condition('Available').status, 'True');
  assert.equal(cluster.condition('Progressing').message, 'Cluster version is 0.1.0');
  const before = JSON.stringify(cluster.object.status);
  cluster.plan();
  assert.equal(JSON.stringify(cluster.object.status), before, 'nothing is written when nothing has changed');
});

test('lists newer releases of the channel that every host can run as available updates', () => {
  const cluster = new Cluster();
  cluster.releases = [
    release('0.2.0'),
    release('0.10.0', { channels: ['stable'] }),
    release('0.3.0', { channels: ['fast'] }),
    release('0.4.0', { architectures: ['arm64'] }),
    release('0.5.0', { kubernetes: 'v1.39.0' }),
    release('0.0.9'),
  ];
  cluster.plan();
  assert.deepEqual(
    cluster.object.status?.availableUpdates?.map(({ version }) => version),
    ['0.10.0', '0.2.0'],
  );
});

test('updates one host at a time: masters first, the leader of the store as the last master, then nodes', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.want('0.2.0');
  assert.equal(cluster.plan().updatingTo, '0.2.0');
  assert.deepEqual(cluster.history, ['0.2.0 Partial', '0.1.0 Completed']);
  assert.equal(cluster.condition('Progressing').status, 'True');
  cluster.run();
  assert.deepEqual(cluster.requests, ['m2 0.2.0', 'm3 0.2.0', 'm1 0.2.0', 'w1 0.2.0']);
  assert.deepEqual(cluster.history, ['0.2.0 Completed', '0.1.0 Completed']);
  assert.equal(cluster.object.status?.history?.[0]?.verified, true);
  assert.equal(cluster.condition('Progressing').message, 'Cluster version is 0.2.0');
});

test('starts the update of a host only while all other hosts are healthy', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.change('m3', { healthy: false, fault: 'api: no answer' });
  cluster.want('0.2.0');
  assert.equal(cluster.plan().hostRequest, undefined);
  assert.match(cluster.condition('Progressing').message ?? '', /waiting for m3: api: no answer/);
  cluster.change('m3', { healthy: true, fault: '' });
  assert.equal(cluster.plan().hostRequest?.host, 'm2');
});

test('does not complete an update before every host has confirmed the new version', () => {
  const cluster = new Cluster(['m1']);
  cluster.releases = [release('0.2.0')];
  cluster.plan();
  cluster.want('0.2.0');
  const wanted = cluster.plan().hostRequest?.wanted;
  assert.ok(wanted);
  cluster.change('m1', { wanted, version: '0.2.0', update: { ...confirmed(wanted), state: 'Restarting' } });
  const trying = cluster.plan();
  assert.equal(trying.status.history?.[0]?.state, 'Partial');
  assert.equal(trying.updatingTo, '0.2.0');
  cluster.change('m1', { update: confirmed(wanted) });
  const done = cluster.plan();
  assert.equal(done.status.history?.[0]?.state, 'Completed');
  assert.equal(done.updatingTo, undefined);
});

test('returns all hosts to the old version if one host does not become healthy, and does not retry the update', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.want('0.2.0');
  cluster.run({ host: 'm3', version: '0.2.0' });
  assert.deepEqual(cluster.requests, ['m2 0.2.0', 'm3 0.2.0', 'm2 0.1.0']);
  assert.deepEqual(new Set(cluster.hosts.map(({ version }) => version)), new Set(['0.1.0']));
  assert.deepEqual(cluster.history, ['0.1.0 Completed', '0.2.0 Partial', '0.1.0 Completed']);
  assert.ok(cluster.object.status?.history?.every(({ completionTime }) => completionTime !== undefined));
  assert.equal(cluster.condition('Failing').status, 'True');
  assert.match(cluster.condition('Failing').message ?? '', /update to 0\.2\.0 was rolled back: host m3: not healthy/);
  cluster.run();
  assert.equal(cluster.requests.length, 3);
  // A change of the spec starts another attempt.
  cluster.want('0.2.0');
  cluster.run();
  assert.deepEqual(cluster.history[0], '0.2.0 Completed');
  assert.equal(cluster.condition('Failing').status, 'False');
});

test('the update of a host fails if the host is not healthy after ten minutes', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.want('0.2.0');
  const requested = cluster.plan().hostRequest;
  assert.ok(requested);
  cluster.change(requested.host, {
    wanted: requested.wanted,
    healthy: false,
    fault: 'the host does not report',
    underWayMs: 600_000,
  });
  assert.equal(cluster.plan().givenUp, undefined);
  cluster.change(requested.host, { underWayMs: 600_001 });
  assert.match(cluster.plan().givenUp?.message ?? '', /m2: not healthy after 10 minutes: the host does not report/);
});

test('an update skips hosts in paused pools', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.change('w1', { paused: true });
  cluster.want('0.2.0');
  cluster.run();
  assert.deepEqual(cluster.requests, ['m2 0.2.0', 'm3 0.2.0', 'm1 0.2.0']);
  assert.equal(cluster.condition('Progressing').message, 'Cluster version is 0.2.0; paused: w1');
});

const blocking: ClusterOperator = {
  metadata: { name: 'kube-apiserver' },
  status: {
    conditions: [
      {
        type: 'Upgradeable',
        status: 'False',
        lastTransitionTime: '',
        reason: 'KubeletSkewUnsupported',
        message: 'w1 is old',
      },
    ],
  },
};

test('Upgradeable=False blocks minor updates, but neither patch updates nor forced ones', () => {
  const cluster = new Cluster();
  cluster.operators = [blocking];
  cluster.releases = [release('0.2.0'), release('0.1.1')];
  cluster.plan();
  assert.equal(cluster.condition('Upgradeable').reason, 'KubeletSkewUnsupported');
  cluster.want('0.2.0');
  assert.equal(cluster.plan().hostRequest, undefined);
  assert.equal(cluster.condition('Failing').reason, 'UpgradePreconditionCheckFailed');
  assert.deepEqual(cluster.history, ['0.1.0 Completed']);
  cluster.want('0.1.1');
  assert.ok(cluster.plan().hostRequest);
  cluster.run();
  cluster.want('0.2.0', true);
  assert.ok(cluster.plan().hostRequest);
});

test('rejects a downgrade or an unknown release, and performs a forced downgrade', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.0.9')];
  cluster.want('0.0.9');
  assert.equal(cluster.plan().hostRequest, undefined);
  assert.match(cluster.condition('Failing').message ?? '', /0\.0\.9 is older than 0\.1\.0; --force overrides/);
  cluster.want('0.7.0');
  assert.equal(cluster.plan().hostRequest, undefined);
  assert.match(cluster.condition('Failing').message ?? '', /the release is not imported/);
  cluster.want('0.0.9', true);
  cluster.run();
  assert.equal(cluster.history[0], '0.0.9 Completed');
});

test('accepts a version that an administrator installed on all hosts manually', () => {
  const cluster = new Cluster(['m1']);
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.want('0.2.0');
  cluster.run();
  cluster.change('m1', { version: '0.3.0' });
  cluster.run();
  assert.deepEqual(cluster.history, ['0.3.0 Completed', '0.2.0 Completed', '0.1.0 Completed']);
  assert.equal(cluster.condition('Failing').status, 'False');
  assert.equal(cluster.requests.length, 1);
});

test('sets Failing=True while a ClusterOperator is unavailable', () => {
  const cluster = new Cluster();
  const conditions = [{ type: 'Available', status: 'False', lastTransitionTime: '' }] as const;
  cluster.operators = [{ metadata: { name: 'dns' }, status: { conditions } }];
  cluster.plan();
  assert.equal(cluster.condition('Failing').reason, 'ClusterOperatorNotAvailable');
  assert.equal(
    cluster.condition('Progressing').message,
    'Error while reconciling 0.1.0: Cluster operator dns is not available',
  );
});

test('stops an update when desiredUpdate is cleared, and returns updated hosts when the earlier release is requested', () => {
  const cluster = new Cluster();
  cluster.releases = [release('0.1.0'), release('0.2.0')];
  cluster.run();
  cluster.want('0.2.0');
  const { hostRequest } = cluster.plan();
  assert.equal(hostRequest?.host, 'm2');
  cluster.change('m2', { wanted: hostRequest.wanted, version: '0.2.0', update: confirmed(hostRequest.wanted) });
  cluster.clear();
  assert.equal(cluster.run().updatingTo, undefined);
  assert.deepEqual(cluster.requests, []);
  assert.deepEqual(cluster.history, ['0.1.0 Completed', '0.2.0 Partial', '0.1.0 Completed']);
  cluster.change('m3', { version: '0.2.0' });
  cluster.want('0.1.0', true);
  cluster.run();
  assert.deepEqual(cluster.requests, ['m2 0.1.0', 'm3 0.1.0']);
  assert.equal(cluster.history[0], '0.1.0 Completed');
  cluster.change('w1', { version: '0.2.0' });
  cluster.run();
  assert.deepEqual(cluster.requests, ['m2 0.1.0', 'm3 0.1.0'], 'a host that was updated manually keeps its version');
});

test('returns all updated hosts when the earlier release is requested during an update', () => {
  const cluster = new Cluster();
  cluster.releases = [release('0.1.0'), release('0.2.0')];
  cluster.run();
  cluster.want('0.2.0');
  const { hostRequest } = cluster.plan();
  assert.equal(hostRequest?.host, 'm2');
  cluster.change('m2', { wanted: hostRequest.wanted, version: '0.2.0', update: confirmed(hostRequest.wanted) });
  cluster.want('0.1.0', true);
  cluster.run();
  assert.deepEqual(cluster.requests, ['m2 0.1.0']);
  assert.equal(cluster.history[0], '0.1.0 Completed');
});

test('returns all hosts to the former version after an administrator rolled back one host of a completed update', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.1.0'), release('0.2.0')];
  cluster.want('0.2.0');
  cluster.run();
  assert.deepEqual(cluster.history, ['0.2.0 Completed', '0.1.0 Completed']);
  const wanted = cluster.hosts.find(({ name }) => name === 'm1')?.wanted;
  assert.ok(wanted);
  // An administrator ran `hyperedge bundle rollback` on this host.
  cluster.change('m1', { version: '0.1.0', update: failure(wanted) });
  cluster.run();
  assert.deepEqual(new Set(cluster.hosts.map(({ version }) => version)), new Set(['0.1.0']));
  assert.deepEqual(cluster.history, ['0.1.0 Completed', '0.2.0 Completed', '0.1.0 Completed']);
  assert.match(cluster.condition('Failing').message ?? '', /update to 0\.2\.0 was rolled back: host m1/);
  const requests = cluster.requests.length;
  cluster.run();
  assert.equal(cluster.requests.length, requests, 'the update does not start again');
});

test('returns hosts that an abandoned release made unhealthy to the former version, and unreachable hosts last', () => {
  const cluster = new Cluster();
  cluster.plan();
  cluster.releases = [release('0.1.0'), release('0.2.0')];
  cluster.want('0.2.0');
  cluster.run();
  cluster.requests.length = 0;
  const wanted = cluster.hosts.find(({ name }) => name === 'm2')?.wanted;
  assert.ok(wanted);
  // The API servers of all masters fail, and an administrator rolls one of them back.
  for (const name of ['m1', 'm3']) cluster.change(name, { healthy: false, fault: 'api: connection refused' });
  cluster.change('w1', { healthy: false, silent: true, fault: 'the host does not report' });
  cluster.change('m2', { version: '0.1.0', update: failure(wanted) });
  for (let round = 0; round < 10; round++) {
    const { hostRequest } = cluster.plan();
    if (hostRequest === undefined) continue;
    cluster.requests.push(hostRequest.host);
    cluster.change(hostRequest.host, {
      wanted: hostRequest.wanted,
      version: '0.1.0',
      update: confirmed(hostRequest.wanted),
      healthy: true,
      fault: '',
    });
  }
  assert.deepEqual(cluster.requests, ['m3', 'm1']);
  assert.match(
    cluster.condition('Progressing').message ?? '',
    /3 of 4 hosts done .* waiting for w1: the host does not report/,
  );
  cluster.change('w1', { healthy: true, silent: false, fault: '' });
  assert.equal(cluster.plan().hostRequest?.host, 'w1');
});

test('starts an update while hosts are unhealthy only if the update is forced', () => {
  const cluster = new Cluster(['m1', 'm2', 'm3']);
  cluster.plan();
  cluster.releases = [release('0.2.0')];
  cluster.change('m3', { healthy: false, fault: 'api: no answer' });
  cluster.want('0.2.0');
  assert.equal(cluster.plan().hostRequest, undefined);
  cluster.want('0.2.0', true);
  assert.equal(cluster.plan().hostRequest?.host, 'm3');
});
