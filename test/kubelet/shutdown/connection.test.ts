/** Connections of the shutdown manager to the login manager. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import { ShutdownManager } from '../../../src/kubelet/shutdown/manager.ts';
import type { LoginManager } from '../../../src/kubelet/shutdown/port.ts';

function rig(login: Pick<LoginManager, 'lock'>) {
  let open = 0;
  let opened = 0;
  const timers: (() => void)[] = [];
  const manager = new ShutdownManager({
    login: {
      maxDelayMs: async () => 60_000,
      raiseMaxDelay: async () => {},
      follow: async () => {
        opened += 1;
        open += 1;
        let isOpen = true;
        const close = (): void => {
          if (isOpen) open -= 1;
          isOpen = false;
        };
        return { close, lost: new Promise(() => {}) };
      },
      ...login,
    },
    periods: [{ priority: 0, seconds: 10 }],
    services: {} as never,
    pods: {} as never,
    clock: {
      nowMs: () => 0,
      monotonicMs: () => 0,
      setTimer: (_delayMs, callback) => {
        timers.push(callback);
        return { cancel: () => {} };
      },
    },
    log: silentLog,
    onChanged: () => {},
  });
  return {
    manager,
    connections: () => ({ opened, open }),
    async retry(): Promise<void> {
      await turn();
      timers.shift()?.();
      await turn();
    },
  };
}

test('closes the connection to the login manager when the lock cannot be taken', async () => {
  const { manager, connections, retry } = rig({
    lock: () => Promise.reject(new Error('systemd-inhibit: not found')),
  });
  manager.start();
  for (let round = 0; round < 3; round++) await retry();
  assert.deepEqual(connections(), { opened: 4, open: 0 });
  manager.stop();
});

test('closes the connection when the manager stops during the wait for the lock', async () => {
  const lock = Promise.withResolvers<{ release(): void }>();
  let releases = 0;
  const { manager, connections } = rig({ lock: () => lock.promise });
  manager.start();
  await turn();
  manager.stop();
  lock.resolve({
    release: () => {
      releases += 1;
    },
  });
  await turn();
  assert.deepEqual(connections(), { opened: 1, open: 0 });
  assert.equal(releases, 1);
});
