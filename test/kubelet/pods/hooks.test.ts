import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { runHook } from '../../../src/kubelet/pods/containers/hooks.ts';

test('runs the HTTP hook of a pod whose grace period exceeds the longest timer delay', async () => {
  const target = {
    container: { name: 'c' },
    containerId: 'c',
    ip: '192.0.2.1',
    network: {
      httpGet: async (_url: URL, _headers: unknown, signal: AbortSignal) => {
        for (let turn = 0; turn < 20; turn++) await setImmediate();
        signal.throwIfAborted();
        return { code: 200 };
      },
    },
  };
  for (const seconds of [2_147_484, 5_000_000, Number.MAX_SAFE_INTEGER])
    await runHook({ httpGet: { port: 80 } }, target as never, seconds * 1000);
});
