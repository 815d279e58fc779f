import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readExposition } from '../../../src/metrics/core/exposition.ts';
import { usageOf, usageQuantities, windowText } from '../../../src/metrics/core/usage.ts';

const text = `# HELP node_cpu_usage_seconds_total x
node_cpu_usage_seconds_total 12.5 1000
node_memory_working_set_bytes 2048 1000
container_cpu_usage_seconds_total{container="c",namespace="n",pod="p"} 3 1000
container_memory_working_set_bytes{container="c",namespace="n",pod="p"} 4096 1000
container_start_time_seconds{container="c",namespace="n",pod="p"} 0.5
container_cpu_usage_seconds_total{container="half",namespace="n",pod="p"} 3 1000
pod_cpu_usage_seconds_total{namespace="n",pod="p"} 3
container_cpu_usage_seconds_total{container="c",namespace="n",pod="bad"} NaN
nonsense {
`;

test('parses CPU, memory and start times of usage metrics, and ignores incomplete samples', () => {
  const { node, pods } = readExposition(text, 5000);
  assert.deepEqual(node, { atMs: 1000, cpuSeconds: 12.5, memoryBytes: 2048, startedAtMs: 0 });
  assert.deepEqual([...pods.keys()], ['n/p']);
  assert.deepEqual(
    [...(pods.get('n/p') ?? [])],
    [['c', { atMs: 1000, cpuSeconds: 3, memoryBytes: 4096, startedAtMs: 500 }]],
  );
});

const at = (atMs: number, cpuSeconds: number, startedAtMs = 0) => ({
  atMs,
  cpuSeconds,
  memoryBytes: 3000,
  startedAtMs,
});

test('computes the CPU rate between two readings', () => {
  const usage = usageOf(at(0, 1), at(15_000, 4));
  assert.deepEqual(usage, { atMs: 15_000, windowMs: 15_000, cpuNanoCores: 200_000_000, memoryBytes: 3000 });
  assert.deepEqual(usage && usageQuantities(usage), { cpu: '200000000n', memory: '2Ki' });
  assert.equal(windowText(15_020), '15.02s');
});

test('computes the CPU rate of a restarted container from its new start, and no rate without a start time', () => {
  assert.equal(usageOf(at(0, 9), at(15_000, 1, 5_000))?.windowMs, 10_000);
  assert.equal(usageOf(at(0, 9), at(15_000, 1)), undefined);
  assert.equal(usageOf(undefined, at(15_000, 1)), undefined);
  assert.equal(usageOf(at(14_900, 1), at(15_000, 1)), undefined);
});
