import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { EventRecorder } from '../../../src/client/index.ts';
import { alertTargets, createHostAlerts } from '../../../src/host/alerts/alerts.ts';
import { loadSettings, type Settings } from '../../../src/host/config/settings.ts';

function recorderOf(events: string[]): EventRecorder {
  return {
    event: (object, type, reason, message) =>
      void events.push(`${object.kind}/${object.metadata?.name} ${type} ${reason} ${message}`),
    stop: async () => {},
  };
}

test('reports a firing alert as a condition and an event of the Node, and then its resolution', async () => {
  const events: string[] = [];
  const { engine, conditions } = createHostAlerts(toNodeName('edge-1'), recorderOf(events), silentLog);
  let full = 0;
  const target = { job: 'hyperedge-etcd', scrape: async () => `hyperedge_etcd_disk_full ${full}\n` };
  const before = new Set(['Ready']);
  await engine.round([target]);
  assert.deepEqual(await conditions(before), [], 'a host without alerts has no condition');
  full = 1;
  await engine.round([target]);
  assert.deepEqual(await conditions(before), [
    {
      type: 'HyperedgeAlerts',
      status: 'True',
      reason: 'AlertsFiring',
      message: 'StoreDiskIsFull (critical); run "hyperedge alerts" on this host',
    },
  ]);
  full = 0;
  await engine.round([target]);
  const [condition] = await conditions(new Set(['Ready', 'HyperedgeAlerts']));
  assert.equal(condition?.status, 'False');
  assert.deepEqual(await conditions(before), []);
  assert.deepEqual(events, [
    'Node/edge-1 Warning AlertFiring StoreDiskIsFull: The disk of edge-1 is full, so the store accepts no writes. ' +
      'Free space on the file system of /var/lib/origin.',
    'Node/edge-1 Normal AlertResolved StoreDiskIsFull: The disk of edge-1 is full, so the store accepts no writes.',
  ]);
});

test('a host scrapes the components of its roles and its own metrics', async () => {
  const settings = await loadSettings({ root: '/nonexistent-root' });
  const jobs = (more: Partial<Settings>) => alertTargets({ ...settings, ...more }, () => '').map(({ job }) => job);
  assert.deepEqual(jobs({}), ['hyperedge-host', 'hyperedge-api', 'hyperedge-etcd', 'hyperedge-router']);
  const router = { ...settings.router, enabled: false };
  assert.deepEqual(jobs({ roles: new Set(['node']), router }), ['hyperedge-host']);
  const [host] = alertTargets(settings, () => 'more_metrics 1\n');
  const text = await host?.scrape(AbortSignal.timeout(5_000));
  assert.match(text ?? '', /^machine_memory_bytes \d+$/m);
  assert.match(text ?? '', /^node_memory_working_set_bytes \d+$/m);
  assert.match(text ?? '', /^more_metrics 1$/m);
});
