import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { Prober } from '../../../src/kubelet/probes/prober.ts';
import type { ContainerStatus, Runtime } from '../../../src/runtime/port.ts';
import { realClock } from '../lab.ts';

test('a probe with a redirect to another host succeeds without following the redirect, and records an event', async () => {
  const pod: Pod = {
    metadata: { name: 'p', uid: 'u' },
    spec: {
      containers: [
        { name: 'c', livenessProbe: { httpGet: { path: '/away', port: 80 }, periodSeconds: 1, failureThreshold: 1 } },
      ],
    },
  };
  const status = { id: 'i', name: 'c', state: 'running', startedAtMs: 0 } as unknown as ContainerStatus;
  const requested: string[] = [];
  const events: string[] = [];
  const prober = new Prober({
    runtime: {} as Runtime,
    network: {
      connect: () => Promise.reject(new Error('not asked')),
      grpcHealth: () => Promise.reject(new Error('not asked')),
      httpGet: (url) => {
        requested.push(url.href);
        return Promise.resolve({ code: 302, location: 'http://192.0.2.1/', body: 'Found' });
      },
    },
    clock: realClock,
    random: { random: () => 0, uuid: () => 'u', bytes: (length) => new Uint8Array(length) },
    onResult: () => {},
    event: (_pod, container, reason, message) => events.push(`${container} ${reason}: ${message}`),
  });
  prober.sync(pod, [status], '192.0.2.9', new Set());
  for (let attempt = 0; attempt < 500 && events.length === 0; attempt += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  prober.sync(pod, [], '192.0.2.9', new Set());
  assert.deepEqual(requested, ['http://192.0.2.9/away']);
  assert.deepEqual(events, [
    'c ProbeWarning: Liveness probe warning: Probe terminated redirects, Response body: Found',
  ]);
});

test('does not count a probe failure if this process was too late to read the response', async () => {
  const results: string[] = [];
  for (const lateMs of [100, 4_000]) {
    const httpGet = { path: '/livez', port: 80 };
    const pod: Pod = {
      metadata: { name: 'p', uid: `late by ${lateMs} ms` },
      spec: {
        containers: [
          { name: 'c', livenessProbe: { httpGet, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 1 } },
        ],
      },
    };
    const status = { id: 'i', name: 'c', state: 'running', startedAtMs: 0 } as unknown as ContainerStatus;
    let monotonicMs = 0;
    let attempts = 0;
    const timers: (() => void)[] = [];
    const prober = new Prober({
      runtime: {} as Runtime,
      network: {
        connect: () => Promise.reject(new Error('not called')),
        grpcHealth: () => Promise.reject(new Error('not called')),
        httpGet: () => {
          attempts += 1;
          monotonicMs += 2_000 + lateMs;
          return Promise.reject(new Error('timeout'));
        },
      },
      clock: {
        ...realClock,
        nowMs: () => 100_000,
        monotonicMs: () => monotonicMs,
        setTimer: (_delayMs, act) => {
          timers.push(act);
          return { cancel: () => {} };
        },
      },
      random: { random: () => 0, uuid: () => 'u', bytes: (length) => new Uint8Array(length) },
      onResult: (uid) => results.push(uid),
      event: () => {},
    });
    prober.sync(pod, [status], '192.0.2.9', new Set());
    for (let turn = 0; turn < 20 && attempts < 2; turn += 1) {
      timers.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    prober.stop();
  }
  assert.deepEqual(results, ['late by 100 ms']);
});
