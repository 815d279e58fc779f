import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigMap, Node } from '../../../../src/api/generated/core/v1.ts';
import {
  REPORT_ANNOTATION,
  UPDATE_ANNOTATION,
  WANTED_ANNOTATION,
} from '../../../../src/api/kinds/nodes/nodes/host-report.ts';
import { announcementConfigMap } from '../../../../src/api/releases/announcement.ts';
import { manifestText } from '../../../../src/api/releases/manifest.ts';
import type { AnyObject } from '../../../../src/console/data/api/resources.ts';
import { requestRollBack, requestUpdate, rollBackOf } from '../../../../src/console/data/hosts/roll-back.ts';
import { canStop, updateProgress } from '../../../../src/console/data/hosts/updates.ts';
import { nextGuardStep } from '../../../../src/openshift/updates/core/index.ts';

const SINCE = '2026-01-02T03:04:05Z';
interface Given {
  readonly version?: string;
  readonly probes?: object;
  readonly wanted?: object;
  readonly update?: object;
  readonly unschedulable?: boolean;
  readonly ready?: string;
}

function host(
  name: string,
  { version, probes = {}, wanted, update, unschedulable = false, ready = 'True' }: Given,
): Node {
  const annotations: Record<string, string> = {};
  if (version !== undefined)
    annotations[REPORT_ANNOTATION] = JSON.stringify({ version, kubernetes: 'v1', kubeletAuthority: true, probes });
  if (wanted !== undefined) annotations[WANTED_ANNOTATION] = JSON.stringify({ manifest: '', ...wanted });
  if (update !== undefined) annotations[UPDATE_ANNOTATION] = JSON.stringify({ message: '', since: SINCE, ...update });
  return {
    metadata: { name, annotations },
    spec: { unschedulable },
    status: { nodeInfo: { architecture: 'amd64' }, conditions: [{ type: 'Ready', status: ready }] },
  } as Node;
}

const cluster = (desired: string, status: 'True' | 'False', message = '', history: readonly object[] = []): AnyObject =>
  ({
    metadata: { name: 'version', generation: 3 },
    spec: { desiredUpdate: { version: '2.0.0' } },
    status: { desired: { version: desired }, history, conditions: [{ type: 'Progressing', status, message }] },
  }) as AnyObject;

const phases = (version: AnyObject, ...nodes: readonly Node[]): unknown =>
  updateProgress(version, nodes).hosts.map(({ phase }) => phase);

const wanted = { id: '3', version: '2.0.0' };
const at = (state: string, more: object = {}): object => ({ id: '3', version: '2.0.0', state, ...more });

describe('progress of an update', () => {
  const running = cluster('2.0.0', 'True');

  it('progress of an update has a phase for each state that a host reports', () => {
    const why = 'the disk is slow';
    const rows = updateProgress(running, [
      host('a', { version: '1.0.0' }),
      host('b', { version: '1.0.0', wanted }),
      host('c', { version: '1.0.0', wanted, update: at('Fetching') }),
      host('d', {
        version: '1.0.0',
        wanted: { ...wanted, drain: true },
        update: at('Fetching'),
        unschedulable: true,
      }),
      host('e', { version: '1.0.0', wanted, update: at('Restarting') }),
      host('f', { version: '2.0.0', wanted, update: at('Restarting'), probes: { etcd: why, api: '' } }),
      host('g', { version: '2.0.0', wanted, update: at('Restarting', { message: why }) }),
      host('h', { version: '2.0.0', wanted, update: at('Done') }),
      host('i', { version: '1.0.0', wanted, update: at('Failed', { message: why }) }),
    ]).hosts;
    assert.deepEqual(
      rows.map(({ name, phase }) => `${name} ${phase}`),
      [
        'a waiting',
        'b waiting',
        'c preparing',
        'd draining',
        'e switching',
        'f trying',
        'g rolling back',
        'h confirmed',
        'i given up',
      ],
    );
    assert.deepEqual(
      rows.map(({ since }) => since),
      ['', '', ...Array.from({ length: 7 }, () => SINCE)],
    );
    assert.equal(rows[5]?.message, `etcd: ${why}`);
    assert.equal(rows[6]?.message, why);
  });

  it('progress of an update recognizes a rollback by the reason of the update guard', () => {
    const record = { id: '3', from: '1.0.0', to: '2.0.0', phase: 'trying', message: '', timeoutMs: 1_000 } as const;
    for (const state of [
      { elapsedMs: 1e9, starts: 1, restarted: false },
      { elapsedMs: 0, starts: 100, restarted: false },
    ]) {
      const step = nextGuardStep(record, '2.0.0', state);
      assert.ok(step.step === 'write');
      const { message } = step.record;
      const failed = host('a', { version: '1.0.0', wanted, update: at('Failed', { message }) });
      assert.deepEqual(phases(cluster('1.0.0', 'True'), failed), ['rolled back']);
    }
  });

  it('shows hosts that return after another host has failed as waiting, then as confirmed', () => {
    const returning = cluster('1.0.0', 'True');
    const updated = host('a', { version: '2.0.0', wanted, update: at('Done') });
    const back = { id: '3-back', version: '1.0.0' };
    const returned = host('b', { version: '1.0.0', wanted: back, update: { ...back, state: 'Done' } });
    assert.deepEqual(phases(returning, updated, returned), ['waiting', 'confirmed']);
  });

  it('ignores reports of earlier updates, except for an update that is in progress', () => {
    const earlier = { id: '2', version: '2.0.0' };
    const idle = cluster('1.0.0', 'False', 'Cluster version is 1.0.0; paused: y, z');
    assert.deepEqual(
      phases(
        idle,
        host('a', { version: '1.0.0', wanted: earlier, update: { ...earlier, state: 'Failed', message: 'x' } }),
        host('b', { version: '2.0.0', wanted: earlier, update: { ...earlier, state: 'Done' } }),
        host('c', { version: '2.0.0', wanted: earlier, update: { ...earlier, state: 'Restarting' } }),
        host('y', { version: '0.9.0' }),
        host('z', {}),
      ),
      ['up to date', 'not updated', 'trying', 'not updated', 'not updated'],
    );
    assert.deepEqual(
      updateProgress(idle, [host('y', { version: '0.9.0' }), host('b', { version: '2.0.0' })]).hosts.map(
        (row) => row.message,
      ),
      ['the update was stopped, or the host was updated separately', 'its pool is paused'],
    );
  });

  it('counts the hosts that have the version of the cluster', () => {
    const sentence = (...versions: readonly string[]): string =>
      updateProgress(
        running,
        versions.map((version, index) => host(String(index), { version })),
      ).sentence;
    assert.equal(sentence('1.0.0', '2.0.0', '1.0.0'), '1 of 3 hosts have version 2.0.0.');
    assert.equal(sentence('2.0.0'), 'The host has version 2.0.0.');
    assert.equal(sentence('1.0.0'), '0 of 1 host has version 2.0.0.');
    assert.equal(sentence('2.0.0', '2.0.0'), 'All 2 hosts have version 2.0.0.');
  });

  it('progress of an update shows hosts that are not ready, except hosts that restart for the update', () => {
    const rows = updateProgress(running, [
      host('a', { version: '1.0.0', ready: 'Unknown' }),
      host('b', { version: '2.0.0', ready: 'False' }),
      host('c', { version: '1.0.0', ready: 'Unknown', wanted, update: at('Restarting') }),
    ]).hosts;
    assert.deepEqual(
      rows.map(({ phase, level, message }) => [phase, level, message]),
      [
        ['waiting', 'bad', 'the host does not answer; one host is updated after the other'],
        ['up to date', 'bad', 'the host is not ready'],
        ['switching', 'warn', 'the host process restarts with 2.0.0'],
      ],
    );
  });

  it('an update can be stopped only while it is requested and in progress', () => {
    assert.equal(canStop(running), true);
    assert.equal(canStop(cluster('2.0.0', 'False')), false);
    assert.equal(canStop({ ...running, spec: {} }), false);
  });
});

describe('return to an earlier release', () => {
  const digest = 'a'.repeat(64);
  const announcement = (version: string, storeLevel?: number): ConfigMap =>
    announcementConfigMap({
      name: `release-${version}`,
      text: manifestText({
        version,
        kubernetes: 'v1.36.0',
        channels: [],
        files: [{ name: 'hyperedge-linux-x64', architecture: 'x64', size: 1, sha256: digest }],
        ...(storeLevel === undefined ? {} : { storeLevel }),
      }),
      signature: '',
    });
  const done = (version: string): object => ({ state: 'Completed', version });
  const current = cluster('2.0.0', 'False', '', [
    done('2.0.0'),
    { state: 'Partial', version: '1.5.0' },
    done('1.0.0'),
    done('0.9.0'),
  ]);
  const facts = { nodes: [host('a', {})], announcements: [announcement('1.0.0', 3)], storeLevel: 3 };

  it('offers a return to the newest completed release that is older', () => {
    assert.deepEqual(rollBackOf(current, facts), { version: '1.0.0', refusal: undefined, isMissing: false });
    assert.equal(rollBackOf(cluster('1.0.0', 'False', '', [done('1.0.0'), done('2.0.0')]), facts), undefined);
    const during = cluster('2.0.0', 'True', '', [{ state: 'Partial', version: '2.0.0' }, done('1.0.0')]);
    assert.equal(rollBackOf(during, facts)?.version, '1.0.0');
  });

  it('shows the reason for which the server would refuse a return to an earlier release', () => {
    const refusal = (change: object): string => rollBackOf(current, { ...facts, ...change })?.refusal ?? '';
    assert.match(refusal({ announcements: [announcement('1.5.0')] }), /is not imported/);
    assert.equal(rollBackOf(current, { ...facts, announcements: [] })?.isMissing, true);
    assert.match(refusal({ announcements: [{ data: { 'manifest.json': '{' } }] }), /is not imported/);
    assert.match(refusal({ storeLevel: 4 }), /reads stores up to level 3, and the store has level 4; stay at 2\.0\.0/);
    assert.equal(refusal({ storeLevel: undefined }), '');
    const arm = { status: { nodeInfo: { architecture: 'arm64' } } };
    assert.match(refusal({ nodes: [arm] }), /no executable for arm64/);
  });

  it('requests an earlier release with force, which no later update inherits', () => {
    assert.deepEqual(requestRollBack('1.0.0'), {
      spec: { desiredUpdate: { version: '1.0.0', image: null, force: true } },
    });
    assert.deepEqual(requestUpdate('2.0.0', 'i'), {
      spec: { desiredUpdate: { version: '2.0.0', image: 'i', force: null } },
    });
  });
});
