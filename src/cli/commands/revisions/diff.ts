import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { revisionOf } from './number.ts';

export const revisionsDiffCommand: Command = {
  name: 'revisions diff',
  usage: 'COMPONENT REVISION [REVISION] [-o json|yaml]',
  summary: 'show how the input files of two revisions differ',
  description: 'Without a second revision: how the files of now differ. The content of keys is not shown.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [2, 3],
  values: ['operand', 'revision', 'revision'],
  examples: [
    ['Two revisions', 'revisions diff kube-apiserver 6 7'],
    ['A revision and the files of now', 'revisions diff kube-apiserver 6'],
  ],
  run: async ({ flags, positionals: [component = '', from, to], out }) => {
    const { diffRevisions, operandNamed } = await import('../../../host/openshift/revision-archive.ts');
    const newer = to === undefined ? undefined : revisionOf(to);
    const differences = await diffRevisions(
      stringFlag(flags, 'root'),
      operandNamed(component),
      revisionOf(from),
      newer,
    );
    const text = differences.map(({ name, change, lines = [] }) =>
      [`${name}: ${change}`, ...lines.map((line) => `  ${line}`), ''].join('\n'),
    );
    out.stdout((await printDocument(flags, differences)) ?? text.join(''));
    return 0;
  },
};
