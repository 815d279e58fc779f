import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { hostReportOf, REPORT_ANNOTATION } from '../../../../src/api/kinds/nodes/nodes/host-report.ts';
import { silentLog } from '../../../../src/base/log.ts';
import type { ApiClient } from '../../../../src/client/index.ts';
import { systemClock as clock } from '../../../../src/host/process/process.ts';
import { startHostProber } from '../../../../src/openshift/operators/cluster-operators/index.ts';
import type { Probe } from '../../../../src/openshift/operators/cluster-operators/port.ts';

interface Patch {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
}

/** Simulated Node that stores writes. */
function played(): { readonly client: ApiClient; readonly node: Node; writes: number } {
  const node: Node = { metadata: { name: 'h1', annotations: {} } };
  const self = {
    node,
    writes: 0,
    client: {
      resource: () => ({
        get: async () => node,
        patch: async (_name: string, _namespace: undefined, _type: string, { metadata }: Patch) => {
          self.writes += 1;
          Object.assign(node.metadata?.annotations ?? {}, metadata.annotations);
        },
      }),
    } as unknown as ApiClient,
  };
  return self;
}

const until = async (holds: () => boolean): Promise<void> => {
  const began = performance.now();
  while (!holds()) {
    assert.ok(performance.now() - began < 15_000, 'in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

test('reports a fault once after two failed probes, and reports the recovery once', { timeout: 60_000 }, async () => {
  const cluster = played();
  let calls = 0;
  let fault: 'none' | 'once' | 'lasting' = 'none';
  const dns: Probe = async () => {
    calls += 1;
    if (fault === 'none') return;
    if (fault === 'once') fault = 'none';
    throw new Error('connection refused');
  };
  const silent: Probe = (signal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }));
  let hangs = false;
  const api: Probe = (signal) => (hangs ? silent(signal) : Promise.resolve());
  const prober = startHostProber({
    nodeName: 'h1',
    client: cluster.client,
    version: '0.1.0',
    kubernetes: 'v1.36.0',
    clock,
    log: silentLog,
    probes: new Map([
      ['dns', dns],
      ['api', api],
    ]),
  });
  const shown = (): Readonly<Record<string, string>> | undefined => hostReportOf(cluster.node)?.probes;
  await until(() => shown() !== undefined);
  assert.deepEqual(shown(), { api: '', dns: '' });
  fault = 'once';
  const before = calls;
  await until(() => calls >= before + 3);
  assert.equal(cluster.writes, 1);
  fault = 'lasting';
  // Faults are not reported while components start, but the last result is available immediately.
  await until(() => prober.report?.probes.dns === 'connection refused');
  hangs = true;
  await until(() => prober.report?.probes.api === 'no answer within 600 ms');
  prober.stop();
});

test('truncates long values and removes control characters from the report of a host', () => {
  const of = (text: string): ReturnType<typeof hostReportOf> =>
    hostReportOf({ metadata: { annotations: { [REPORT_ANNOTATION]: text } } });
  for (const text of ['', '{', 'null', '[]', '7']) assert.equal(of(text), undefined, text);
  const report = of(
    JSON.stringify({ version: 'x'.repeat(5_000), probes: { dns: '\u001b[2J', nonsense: 'x', api: 7 } }),
  );
  assert.equal(report?.version.length, 512);
  assert.deepEqual(report?.probes, { dns: ' [2J' });
});
