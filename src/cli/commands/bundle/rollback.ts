import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const bundleRollbackCommand: Command = {
  name: 'bundle rollback',
  usage: '[--restore-store] [-o json|yaml]',
  summary: 'return this host to its former release, also when no API server responds',
  description:
    'For a release that failed after its update was confirmed. Pods keep running. While an API server responds, use\n' +
    'oc adm upgrade --to VERSION --force, which returns all hosts.',
  flags: {
    'restore-store': {
      type: 'boolean',
      help: 'replace a store that the former release cannot read with the snapshot before the update',
    },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [['Return to the release before the last update', 'bundle rollback']],
  run: async ({ flags, out, progress }) => {
    const { rollBackRelease } = await import('../../../host/openshift/manual-rollback.ts');
    const options = { root: stringFlag(flags, 'root'), restoreStore: flags['restore-store'] === true };
    const { from, to } = await rollBackRelease(options, progress);
    const document = await printDocument(flags, { from: to, to: from });
    out.stdout(document ?? `this host runs ${from} again instead of ${to}; see hyperedge status\n`);
    return 0;
  },
};
