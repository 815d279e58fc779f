/** The collector of usage with kubelets that answer, and hosts without power that never do. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { beforeEach, suite, test } from 'node:test';
import { MetricsCollector } from '../../../src/apiserver/computed-resources/resource-metrics/collector.ts';
import type { BackendRequest, IncomingMessage } from '../../../src/apiserver/port.ts';
import { silentLog } from '../../../src/base/log.ts';
import { ManualClock } from '../../client/clocks.ts';

suite('usage of nodes', () => {
  let clock: ManualClock;
  let collector: MetricsCollector;
  let hosts: Map<string, { ready: 'True' | 'Unknown'; isSilent: boolean }>;
  let requested: string[];

  const request = ({ host, signal }: BackendRequest): Promise<IncomingMessage> => {
    requested.push(host);
    if (hosts.get(host)?.isSilent === true)
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('no answer')));
      });
    const seconds = clock.nowMs() / 1_000;
    const text = `node_cpu_usage_seconds_total ${seconds}\nnode_memory_working_set_bytes 5\n`;
    return Promise.resolve(Object.assign(Readable.from([Buffer.from(text)]), { statusCode: 200 }) as never);
  };
  const nodeOf = (name: string) => ({
    name,
    shared: () => ({
      status: {
        addresses: [{ type: 'InternalIP', address: name }],
        conditions: [{ type: 'Ready', status: hosts.get(name)?.ready }],
      },
    }),
  });

  beforeEach(() => {
    clock = new ManualClock();
    requested = [];
    hosts = new Map([
      ['n1', { ready: 'True', isSilent: false }],
      ['n2', { ready: 'True', isSilent: true }],
    ]);
    const nodes = () => ({
      get: (_: string, name: string) => (hosts.has(name) ? nodeOf(name) : undefined),
      [Symbol.iterator]: () => [...hosts.keys()].map(nodeOf)[Symbol.iterator](),
    });
    collector = new MetricsCollector({
      clock,
      log: silentLog,
      config: {},
      stopping: new AbortController().signal,
      backends: { request },
      certificates: { current: {} },
      destinations: { kubelet: () => () => true },
      cache: { kind: nodes },
    } as never);
  });

  /** Milliseconds after which the usage is fresh. */
  const freshAfter = async (): Promise<number> => {
    let isFresh = false;
    void collector.fresh().then(() => {
      isFresh = true;
    });
    for (let ms = 0; ms <= 20_000; ms += 500) {
      await clock.advance(ms === 0 ? 0 : 500);
      if (isFresh) return ms;
    }
    return Number.POSITIVE_INFINITY;
  };

  test('requests usage without waiting for a host that did not answer, until the host returns', async () => {
    assert.equal(await freshAfter(), 10_000);
    assert.equal(collector.node('n1')?.memoryBytes, 5);
    await clock.advance(20_000);
    requested.length = 0;
    assert.equal(await freshAfter(), 0);
    hosts.set('n2', { ready: 'True', isSilent: false });
    await clock.advance(40_000);
    assert.ok(requested.includes('n2'));
    assert.equal(await freshAfter(), 0);
    assert.equal(collector.node('n2')?.memoryBytes, 5);
  });

  test('does not wait for a host that is known to be down, and reads the usage of other hosts once per period', async () => {
    hosts.set('n2', { ready: 'Unknown', isSilent: true });
    assert.equal(await freshAfter(), 1_000);
    assert.equal(collector.node('n1')?.memoryBytes, 5);
    requested.length = 0;
    for (let turn = 0; turn < 5; turn++) assert.equal(await freshAfter(), 0);
    assert.deepEqual(requested, []);
  });
});
