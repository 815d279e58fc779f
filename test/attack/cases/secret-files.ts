/** Private files that other users can read or write: the host process must refuse to start. */
import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttackCase } from '../port.ts';

const FILES = ['master/ca.key', 'master/admin.kubeconfig', 'node/node.kubeconfig'];

export const cases: readonly AttackCase[] = [
  {
    finding: 21,
    title: 'a private file that group or other users can read stops the start, with the command that repairs it',
    attack: async (lab) => {
      const root = await mkdtemp(join(tmpdir(), 'he-open-'));
      try {
        await cp(join(lab.appliance.root, 'etc'), join(root, 'etc'), { recursive: true, preserveTimestamps: true });
        // The running appliance uses the same ports; this is detected after the files were checked.
        const unharmed = await lab.appliance.hyperedge(['run', '--root', root], { timeoutMs: 15_000 });
        assert.match(unharmed.stdout + unharmed.stderr, /port \d+ for the kubelet is in use/);
        for (const [index, name] of FILES.entries()) {
          const path = join(root, 'etc/origin', name);
          await chmod(path, index === 1 ? 0o640 : 0o644);
          const ran = await lab.appliance.hyperedge(['run', '--root', root], { timeoutMs: 15_000 });
          const output = ran.stdout + ran.stderr;
          assert.notEqual(ran.code, 0, output.slice(-2_000));
          assert.ok(output.includes(`chmod 0600 ${path}`), `${name}: ${output.slice(-2_000)}`);
          await chmod(path, 0o600);
        }
      } finally {
        await rm(root, { recursive: true, force: true });
      }
    },
  },
];
