/** `hyperedge status` of the packaged executable: with the API server, without it, and without the host process. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { HostStatus } from '../../src/host/control/control.ts';
import type { ClusterStatus } from '../../src/status/port.ts';
import { Appliance, eventually } from './harness.ts';

/** Limit of a report, and of the start of the executable on a busy machine. */
const REPORT_MS = 5_000 + 3_000;

type Document = Partial<HostStatus> & ClusterStatus;

let host: Appliance;

before(async () => {
  host = await Appliance.create();
  await host.start(120_000);
});
after(() => host.stop());

async function status(): Promise<Document & { readonly code: number; readonly tookMs: number }> {
  const began = performance.now();
  const { code, stdout, stderr } = await host.hyperedge(['status', '--root', host.root, '-o', 'json']);
  assert.match(stdout, /^\{/, stderr);
  const document: Document = JSON.parse(stdout);
  return { ...document, code, tookMs: performance.now() - began };
}

test('shows the host and its cluster while everything runs', async () => {
  const found = await eventually('a report without unknown parts', 60_000, async () => {
    const report = await status();
    return report.ready === true && report.unknown.length === 0 ? report : undefined;
  });
  assert.equal(found.code, 0, JSON.stringify(found.alarms));
  assert.deepEqual(
    found.nodes.map(({ health, from }) => [health, from]),
    [['Ready', 'api']],
  );
  assert.deepEqual(
    found.members?.map(({ role, state, lag }) => [role, state, lag]),
    [['leader', 'ok', 0]],
  );
  assert.equal(found.components?.length, 3);
  assert.equal(found.quorum, true);
  assert.ok((found.certificates?.next.inMs ?? 0) > 0);
  const { stdout } = await host.hyperedge(['status', '--root', host.root]);
  assert.match(stdout, /^node \S+ \(\S+\): Ready\n/);
  assert.match(stdout, /^api +running/m);
  assert.ok(!stdout.includes('\u001b'), 'no colours without a terminal');
});

test('reports the known state within five seconds while the API server is stopped', async () => {
  const { components = [] } = await status();
  const pid = components.find(({ name }) => name === 'api')?.pid ?? -1;
  process.kill(pid, 'SIGSTOP');
  try {
    const found = await status();
    assert.equal(found.code, 1);
    assert.ok(found.tookMs < REPORT_MS, `${found.tookMs} ms`);
    assert.match(found.notReady ?? '', /the API server is not ready/);
    assert.match(found.unknown.map(({ what }) => what).join(), /nodes of the API server/);
    assert.deepEqual(
      found.nodes.map(({ health, from }) => [health, from]),
      [['alive', 'gossip']],
    );
    assert.equal(found.members?.[0]?.state, 'ok', 'the store answers without the API server');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await eventually('a Ready host', 60_000, async () => ((await status()).ready === true ? true : undefined));
});

test('shows the state in files when the host process is stopped', async () => {
  await host.halt('SIGTERM');
  const { code, stdout, stderr } = await host.hyperedge(['status', '--root', host.root]);
  assert.equal(code, 1);
  assert.match(stderr, /^hyperedge: the host process does not run here/);
  assert.match(stdout, /^node \S+ \(\S+\): unknown: the host process does not run here/);
  assert.match(stdout, /^certificates +next expires in /m);
  assert.match(stdout, /^Next:\n {2}hyperedge run --root /m);
});
