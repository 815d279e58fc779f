import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { StorageLimits } from '../../../src/kubelet/housekeeping/storage-limits.ts';
import { PodDirectories } from '../../../src/kubelet/pods/directories.ts';
import type { PodTable } from '../../../src/kubelet/pods/pod-table.ts';
import type { PodServices } from '../../../src/kubelet/pods/services.ts';
import type { Trees } from '../../../src/runtime/directory-removal/port.ts';

const MI = 1 << 20;

interface Worker {
  readonly uid: string;
  readonly pod: Pod;
  finished: boolean;
  evicted: boolean;
  messages: string[];
  evict(graceSeconds: number, message: string): void;
}

function worker(uid: string, sizeLimit?: string, medium?: string, storageLimit?: string): Worker {
  const limits = storageLimit === undefined ? {} : { 'ephemeral-storage': storageLimit };
  const emptyDir = { ...(sizeLimit === undefined ? {} : { sizeLimit }), ...(medium === undefined ? {} : { medium }) };
  const pod: Pod = {
    metadata: { name: uid, namespace: 'n', uid },
    spec: { containers: [{ name: 'c', image: 'i', resources: { limits } }], volumes: [{ name: 'v', emptyDir }] },
  };
  return {
    uid,
    pod,
    finished: false,
    evicted: false,
    messages: [],
    evict(_grace, message) {
      this.evicted = true;
      this.messages.push(message);
    },
  };
}

/** `hang`: volumes whose files cannot be counted within a round. */
function rig(workers: readonly Worker[], used: ReadonlyMap<string, number>, hang: ReadonlySet<string>) {
  let nowMs = 0;
  const calls: { readonly pods: string; readonly timeoutMs: number }[] = [];
  const podOf = (path: string): string => path.split('/')[3] ?? '';
  const trees: Trees = {
    remove: async () => {},
    usage: async (paths, { timeoutMs }) => {
      const volumes = paths.filter((path) => path.endsWith('/v'));
      calls.push({ pods: volumes.map(podOf).join(), timeoutMs });
      if (volumes.some((path) => hang.has(podOf(path)))) {
        nowMs += Math.min(timeoutMs, 30_000);
        if (timeoutMs < 30_000) throw new CodedError('timeout', 'late');
      }
      return new Map(volumes.map((path) => [path, used.get(podOf(path)) ?? 0]));
    },
  };
  const services = {
    trees,
    directories: new PodDirectories(
      { volumes: '/kubelet', podLogs: '/logs', containerLogs: '', staticPods: '', images: '' },
      trees,
    ),
    view: { get: () => ({ sandboxes: [], containers: [] }) },
    runtime: { writableLayers: async () => new Map() },
    clock: { monotonicMs: () => nowMs },
    log: silentLog,
  } as unknown as PodServices;
  const limits = new StorageLimits(services, { workers: () => workers } as unknown as PodTable);
  return {
    calls,
    async round(advanceMs: number): Promise<void> {
      nowMs += advanceMs;
      await limits.enforce();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('measures pods with limits every two seconds, and does not measure other pods', async () => {
  const limited = worker('limited', '1Mi');
  const { calls, round } = rig([limited, worker('free')], new Map([['limited', MI]]), new Set());
  await round(0);
  await round(1_999);
  assert.deepEqual(
    calls.map(({ pods }) => pods),
    ['limited'],
  );
  await round(1);
  assert.equal(calls.length, 2);
  assert.equal(limited.evicted, false);
});

test('evicts a pod whose volume exceeds its limit', async () => {
  const limited = worker('limited', '1Mi');
  const { calls, round } = rig([limited], new Map([['limited', MI + 1]]), new Set());
  await round(0);
  assert.deepEqual(limited.messages, ['Usage of EmptyDir volume "v" exceeds the limit "1Mi". ']);
  await round(10_000);
  assert.equal(calls.length, 1);
});

test('counts volumes in huge pages against their own limit, not as ephemeral storage', async () => {
  const disk = worker('disk', undefined, '', '1Mi');
  const pages = worker('pages', undefined, 'HugePages-2Mi', '1Mi');
  const limited = worker('limited', '1Mi', 'HugePages', '1Gi');
  const used = new Map([disk, pages, limited].map(({ uid }) => [uid, 2 * MI]));
  const { round } = rig([disk, pages, limited], used, new Set());
  await round(0);
  assert.deepEqual(
    [disk, pages, limited].map(({ messages }) => messages),
    [
      ['Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. '],
      [],
      ['Usage of EmptyDir volume "v" exceeds the limit "1Mi". '],
    ],
  );
});

test('measures a pod with too many files separately and rarely, without delaying other pods', async () => {
  const crowded = worker('crowded', '1Mi');
  const over = worker('over', '1Mi');
  const { calls, round } = rig(
    [crowded, over],
    new Map([
      ['over', 2 * MI],
      ['crowded', 2 * MI],
    ]),
    new Set(['crowded']),
  );
  await round(0);
  assert.equal(over.evicted, false);
  // Either pod may be evicted first.
  for (let i = 0; i < 4 && !(over.evicted && crowded.evicted); i += 1) await round(500);
  assert.ok(over.evicted && crowded.evicted);
  assert.ok(
    calls.slice(1).every(({ pods }) => !pods.includes(',')),
    JSON.stringify(calls),
  );
});

test('measurements of volumes use at most a twentieth of the time', async () => {
  const crowded = worker('crowded', '1Gi');
  const { calls, round } = rig([crowded], new Map(), new Set(['crowded']));
  await round(0);
  await round(0);
  assert.equal(calls.length, 2, 'once with all, once alone');
  await round(20 * 30_000 - 1);
  assert.equal(calls.length, 2);
  await round(1);
  assert.equal(calls.length, 3);
});
