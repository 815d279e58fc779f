import type { Command } from '../../command.ts';
import { ACCESS, accessOf, NAMESPACE, namespaceOf } from './rig-access.ts';

export const rigReleaseCommand: Command = {
  name: 'rig release',
  usage: 'CLAIM [-n NAMESPACE]',
  summary: 'release a claim: its pods are deleted, and the rig is granted to the next claim',
  flags: { namespace: NAMESPACE, ...ACCESS },
  arguments: [1, 1],
  values: ['rig-claim'],
  examples: [['Release a claim', 'rig release nightly']],
  run: async ({ flags, positionals: [name = ''], out }) => {
    const { releaseRig } = await import('../../../host/commands/rigs.ts');
    if (await releaseRig(accessOf(flags), name, namespaceOf(flags))) {
      out.stdout(`rigclaim ${name} released\n`);
      return 0;
    }
    out.stderr(`hyperedge: rigclaim "${name}" not found in namespace "${namespaceOf(flags)}"\n`);
    return 1;
  },
};
