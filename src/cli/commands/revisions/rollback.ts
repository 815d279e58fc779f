import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { revisionOf } from './number.ts';

export const revisionsRollbackCommand: Command = {
  name: 'revisions rollback',
  usage: 'COMPONENT REVISION [--all]',
  summary: 'restore the configuration files of a revision',
  description: 'The host process installs them as a new revision. Settings of the operator’s object stay.',
  flags: { all: { type: 'boolean', help: 'certificates and keys too' }, root: ROOT_FLAG },
  arguments: [2, 2],
  values: ['operand', 'revision'],
  examples: [['Restore a revision', 'revisions rollback kube-apiserver 6']],
  run: async ({ flags, positionals: [component = '', revision], out }) => {
    const { operandNamed, rollBack } = await import('../../../host/openshift/revision-archive.ts');
    const number = revisionOf(revision);
    const restored = await rollBack(stringFlag(flags, 'root'), operandNamed(component), number, flags['all'] === true);
    for (const path of restored) out.stdout(`${path}\n`);
    out.stdout(
      restored.length === 0 ? 'nothing differs\n' : `${restored.length} files of revision ${number} restored\n`,
    );
    return 0;
  },
};
