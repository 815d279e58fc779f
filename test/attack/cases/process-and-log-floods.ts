/** Pods without limits that create processes or write logs: the node must keep enough of both. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, run, sleep } from '../../e2e/harness.ts';
import { pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

const POD_PIDS = 4_096;
const MIB = 1 << 20;
/** Logs are rotated at 10 MiB; up to 16 MiB more may be written before the rotation. */
const LARGEST_LOG = 26 * MIB;
const LOG_FILES = 5;

const firstOf = async (paths: readonly string[]): Promise<string> => {
  for (const path of paths) {
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text !== undefined) return text.trim();
  }
  throw new Error(`none of ${paths.join(', ')} can be read`);
};

/** Reads a file of a cgroup below `kubepods`, with cgroup v1 or v2. */
const cgroupFile = (level: string, file: string): Promise<string> =>
  firstOf(['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].map((root) => join(root, 'kubepods', level, file)));

export const cases: readonly AttackCase[] = [
  {
    finding: 50,
    title: 'a fork bomb cannot exceed the process limit of its pod, and the host still starts programs',
    exclusive: true,
    attack: async (lab) => {
      const bombs = "for n in 1 2 3 4; do sh -c 'while :; do sleep 1000 & done' 2>/dev/null & done; exec sleep 1000";
      await lab.pods.apply(pod('fork-bomb', { containers: [shell(bombs)] }));
      try {
        await lab.pods.ready('fork-bomb');
        const level = `besteffort/pod${lab.pods.pod('fork-bomb')?.metadata?.uid}`;
        assert.equal(await cgroupFile(level, 'pids.max'), String(POD_PIDS));
        await eventually('the pod has all of its processes', 60_000, async () =>
          Number(await cgroupFile(level, 'pids.current')) >= POD_PIDS - 1 ? true : undefined,
        );
        const [most, allowed] = await Promise.all([
          readFile('/proc/sys/kernel/pid_max', 'utf8').then(Number),
          cgroupFile('', 'pids.max').then(Number),
        ]);
        assert.ok(allowed <= most - 1_024, `all pods may have ${allowed} of ${most} processes`);
        assert.equal((await run('true', [])).code, 0);
        assert.match(await lab.appliance.must(['get', 'nodes', '--no-headers']), / Ready /);
      } finally {
        await lab.pods.remove('fork-bomb');
      }
    },
  },
  {
    finding: 50,
    title: 'a pod that floods its log is throttled, and its logs stay within their size limit',
    exclusive: true,
    attack: async (lab) => {
      await lab.pods.apply(pod('log-flood', { containers: [shell('yes a line of a log; sleep 1000')] }));
      const logs = join(lab.appliance.root, 'var/log/pods');
      const sizes = async (): Promise<number[]> => {
        const name = (await readdir(logs)).find((each) => each.includes('_log-flood_')) ?? '';
        const directory = join(logs, name, 'main');
        return Promise.all((await readdir(directory)).map(async (file) => (await stat(join(directory, file))).size));
      };
      try {
        await lab.pods.ready('log-flood');
        for (let tenths = 0; tenths < 100; tenths += 1) {
          // A file may be rotated between the two calls.
          const found = await sizes().catch(() => []);
          assert.ok(Math.max(0, ...found) <= LARGEST_LOG, `a log of ${Math.max(...found)} bytes`);
          const total = found.reduce((sum, size) => sum + size, 0);
          assert.ok(total <= LOG_FILES * LARGEST_LOG, `${total} bytes of logs`);
          await sleep(100);
        }
        assert.match(await lab.appliance.must(['logs', 'log-flood', '--tail=1']), /a line of a log/);
      } finally {
        await lab.pods.remove('log-flood');
      }
    },
  },
];
