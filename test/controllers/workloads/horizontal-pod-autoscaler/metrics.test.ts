import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetricSpec } from '../../../../src/api/generated/autoscaling/v2.ts';
import {
  type MetricScope,
  readMetrics,
} from '../../../../src/controllers/workloads/horizontal-pod-autoscaler/metrics-controller.ts';

const scope: MetricScope = { namespace: 'ns', selector: 'app=a', resourceOf: async () => 'pods' };
const external = (name: string, value: string): MetricSpec => ({
  type: 'External',
  external: { metric: { name }, target: { type: 'Value', value } },
});

function server() {
  const facts = { requests: 0, concurrent: 0, most: 0 };
  const read = async <R>(): Promise<R> => {
    facts.requests += 1;
    facts.concurrent += 1;
    facts.most = Math.max(facts.most, facts.concurrent);
    await new Promise((resolve) => setImmediate(resolve));
    facts.concurrent -= 1;
    return { items: [{ value: '5' }] } as R;
  };
  return { facts, read };
}

test('reads any number of metrics of an autoscaler one after the other', async () => {
  const { facts, read } = server();
  const specs = Array.from({ length: 200 }, (_, index) => external(`m${index}`, '1'));
  const readings = await readMetrics(read, specs, scope, new AbortController().signal);
  assert.equal(readings.length, 200);
  assert.deepEqual(readings.at(-1), { type: 'value', milli: 5_000 });
  assert.deepEqual([facts.requests, facts.most], [200, 1]);
});

test('reads a metric once for all of its targets', async () => {
  const { facts, read } = server();
  const specs = [external('m', '1'), external('other', '1'), external('m', '2')];
  const readings = await readMetrics(read, specs, scope, new AbortController().signal);
  assert.equal(facts.requests, 2);
  assert.equal(readings[0], readings[2]);
  assert.notEqual(readings[0], readings[1]);
});
