import { countText } from '../../../base/text/count-text.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { revisionOf } from './number.ts';

export const revisionsRollbackCommand: Command = {
  name: 'revisions rollback',
  usage: 'COMPONENT REVISION [--all] [-o json|yaml]',
  summary: 'restore the configuration files of a revision',
  description: 'The host process installs them as a new revision. Settings of the operator’s object stay.',
  flags: { all: { type: 'boolean', help: 'certificates and keys too' }, output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [2, 2],
  values: ['operand', 'revision'],
  examples: [['Restore a revision', 'revisions rollback kube-apiserver 6']],
  run: async ({ flags, positionals: [component = '', revision], out }) => {
    const { operandNamed, rollBack } = await import('../../../host/openshift/revision-archive.ts');
    const number = revisionOf(revision);
    const restored = await rollBack(stringFlag(flags, 'root'), operandNamed(component), number, flags['all'] === true);
    const last =
      restored.length === 0
        ? 'nothing differs'
        : `restored ${countText(restored.length, 'file')} of revision ${number}`;
    const document = await printDocument(flags, { revision: number, restored });
    out.stdout(document ?? [...restored, last].map((line) => `${line}\n`).join(''));
    return 0;
  },
};
