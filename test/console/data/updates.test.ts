import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import {
  type HostUpdate,
  REPORT_ANNOTATION,
  UPDATE_ANNOTATION,
  WANTED_ANNOTATION,
} from '../../../src/api/kinds/nodes/nodes/host-report.ts';
import { updateProgress } from '../../../src/console/data/updates.ts';

interface Given {
  readonly version?: string;
  readonly wanted?: string;
  readonly state?: HostUpdate['state'];
  readonly ready?: string;
}

const node = (name: string, { version, wanted, state, ready = 'True' }: Given): Node => ({
  metadata: {
    name,
    annotations: {
      ...(version === undefined ? {} : { [REPORT_ANNOTATION]: JSON.stringify({ version }) }),
      ...(wanted === undefined ? {} : { [WANTED_ANNOTATION]: JSON.stringify({ id: 'u', version: wanted }) }),
      ...(state === undefined
        ? {}
        : { [UPDATE_ANNOTATION]: JSON.stringify({ id: 'u', version: wanted, state, message: 'no space' }) }),
    },
  },
  status: { conditions: [{ type: 'Ready', status: ready }] },
});
const shown = (nodes: readonly Node[], target: string): unknown[] =>
  updateProgress(nodes, target).hosts.map(({ name, version, level, text }) => [name, version, level, text]);

describe('progress of an update', () => {
  it('counts the hosts that have the version of the cluster', () => {
    const hosts = [node('b', { version: '1' }), node('a', { version: '2' }), node('c', { version: '1' })];
    assert.equal(updateProgress(hosts, '2').sentence, '1 of 3 hosts have version 2.');
    assert.equal(updateProgress(hosts, '2').updated, 1);
    assert.equal(updateProgress([node('a', { version: '2' })], '2').sentence, 'The host has version 2.');
    assert.equal(updateProgress([node('a', { version: '1' })], '2').sentence, '0 of 1 host has version 2.');
  });

  it('shows the step of each host by name', () => {
    const hosts = [
      node('e', { version: '1' }),
      node('d', { version: '1', wanted: '2' }),
      node('c', { version: '1', wanted: '2', state: 'Fetching' }),
      node('b', { version: '1', wanted: '2', state: 'Restarting', ready: 'Unknown' }),
      node('a', { version: '2', wanted: '2', state: 'Done' }),
    ];
    assert.deepEqual(shown(hosts, '2'), [
      ['a', '2', 'good', 'has this version'],
      ['b', '1', 'warn', 'restarts, and is checked before the next host starts'],
      ['c', '1', 'warn', 'copies the release'],
      ['d', '1', 'warn', 'starts its update'],
      ['e', '1', 'warn', 'waits for its turn'],
    ]);
  });

  it('shows failures, hosts that do not answer, and missing reports', () => {
    const hosts = [
      node('a', { version: '1', wanted: '2', state: 'Failed' }),
      node('b', { version: '2', ready: 'Unknown' }),
      node('c', { version: '2', ready: 'False' }),
      node('d', {}),
    ];
    assert.deepEqual(shown(hosts, '2'), [
      ['a', '1', 'bad', 'failed: no space'],
      ['b', '2', 'bad', 'does not answer'],
      ['c', '2', 'bad', 'is not ready'],
      ['d', '', 'warn', 'has not reported its version'],
    ]);
  });

  it('ignores the state of an earlier update', () => {
    assert.deepEqual(shown([node('a', { version: '2', wanted: '1', state: 'Failed' })], '2'), [
      ['a', '2', 'good', 'has this version'],
    ]);
  });
});
