/** Expansion of variable references in a pod, whose result must be limited before it is built. */
import assert from 'node:assert/strict';
import { pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackCase } from '../port.ts';

export const cases: readonly AttackCase[] = [
  {
    finding: 7,
    title: 'environment variables and arguments that expand exponentially cause CreateContainerConfigError',
    attack: async (lab) => {
      const doubling = Array.from({ length: 24 }, (_, index) => ({
        name: `V${index}`,
        value: index === 0 ? 'x'.repeat(16) : `$(V${index - 1})$(V${index - 1})`,
      }));
      const repeated = [{ name: 'BIG', value: 'x'.repeat(100_000) }];
      const attackers = {
        'doubled-env': shell('sleep 1000', { env: doubling }),
        'repeated-args': shell('sleep 1000', { env: repeated, args: Array.from({ length: 400 }, () => '$(BIG)') }),
      };
      await lab.pods.apply(...Object.entries(attackers).map(([name, main]) => pod(name, { containers: [main] })));
      for (const name of Object.keys(attackers)) {
        const refused = await lab.pods.until(
          name,
          'is refused',
          (each) => each.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
        );
        assert.match(
          refused.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '',
          /more than 1048576 bytes/,
          'the limit is named',
        );
      }
      await lab.pods.remove(...Object.keys(attackers));
    },
  },
];
