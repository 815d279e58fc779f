/** Private material that other users of the host can read or write is refused at the start. */
import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttackCase } from '../port.ts';

const FILES = ['master/ca.key', 'master/admin.kubeconfig', 'node/node.kubeconfig'];

export const cases: readonly AttackCase[] = [
  {
    finding: 21,
    title: 'a private file that the world or the group can read stops the start, with the command that repairs it',
    attack: async (lab) => {
      const root = await mkdtemp(join(tmpdir(), 'he-open-'));
      try {
        await cp(join(lab.appliance.root, 'etc'), join(root, 'etc'), { recursive: true, preserveTimestamps: true });
        // Its ports belong to the appliance that runs, which is found out after the files have been judged.
        const unharmed = await lab.appliance.hyperedge(['run', '--root', root], { timeoutMs: 15_000 });
        assert.match(unharmed.stdout + unharmed.stderr, /port \d+ for the kubelet is in use/);
        for (const [index, name] of FILES.entries()) {
          const path = join(root, 'etc/origin', name);
          await chmod(path, index === 1 ? 0o640 : 0o644);
          const ran = await lab.appliance.hyperedge(['run', '--root', root], { timeoutMs: 15_000 });
          const said = ran.stdout + ran.stderr;
          assert.notEqual(ran.code, 0, said.slice(-2_000));
          assert.ok(said.includes(`chmod 0600 ${path}`), `${name}: ${said.slice(-2_000)}`);
          await chmod(path, 0o600);
        }
      } finally {
        await rm(root, { recursive: true, force: true });
      }
    },
  },
];
