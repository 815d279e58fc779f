/** Connections of the shutdown manager to the login manager. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import { ShutdownManager } from '../../../src/kubelet/shutdown/manager.ts';
import type { LoginManager } from '../../../src/kubelet/shutdown/port.ts';

function rig(login: Pick<LoginManager, 'lock'>, written: () => Promise<void> = async () => {}) {
  let announce: (begins: boolean) => void = () => {};
  let open = 0;
  let opened = 0;
  const timers: (() => void)[] = [];
  const manager = new ShutdownManager({
    login: {
      maxDelayMs: async () => 60_000,
      raiseMaxDelay: async () => {},
      follow: async (listener) => {
        announce = listener;
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
    services: { node: () => undefined, statuses: { written } } as never,
    pods: { activePods: () => [], worker: () => undefined },
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
    announce: async (begins: boolean): Promise<void> => {
      announce(begins);
      await turn();
    },
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

/** Locks that are granted when the test resolves them. */
function pendingLocks() {
  const requests: PromiseWithResolvers<{ release(): void }>[] = [];
  const held = new Set<number>();
  return {
    held,
    lock: () => {
      const request = Promise.withResolvers<{ release(): void }>();
      requests.push(request);
      return request.promise;
    },
    grant: async (index: number): Promise<void> => {
      held.add(index);
      requests[index]?.resolve({ release: () => held.delete(index) });
      await turn();
    },
  };
}

test('holds one lock when a shutdown is cancelled before the first lock is granted', async () => {
  const { lock, grant, held } = pendingLocks();
  const { manager, announce } = rig({ lock });
  manager.start();
  await turn();
  await announce(true);
  await announce(false);
  await grant(1);
  await grant(0);
  assert.deepEqual([...held], [1]);
  manager.stop();
  assert.deepEqual([...held], []);
});

test('releases a lock that is granted after the shutdown has ended the pods', async () => {
  const { lock, grant, held } = pendingLocks();
  const { manager, announce } = rig({ lock });
  manager.start();
  await turn();
  await announce(true);
  await grant(0);
  assert.deepEqual([...held], []);
  manager.stop();
});

test('keeps the lock of a cancelled shutdown whose pods end later', async () => {
  const { lock, grant, held } = pendingLocks();
  const reported = Promise.withResolvers<void>();
  const { manager, announce } = rig({ lock }, () => reported.promise);
  manager.start();
  await turn();
  await grant(0);
  await announce(true);
  await announce(false);
  await grant(1);
  reported.resolve();
  await turn();
  assert.deepEqual([...held], [1]);
  manager.stop();
  assert.deepEqual([...held], []);
});

test('releases a lock that is granted after the manager has stopped', async () => {
  const { lock, grant, held } = pendingLocks();
  const { manager, announce } = rig({ lock });
  manager.start();
  await turn();
  await grant(0);
  await announce(true);
  await announce(false);
  manager.stop();
  await grant(1);
  assert.deepEqual([...held], []);
});
