import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { revisionOf } from './number.ts';

export const revisionsDiffCommand: Command = {
  name: 'revisions diff',
  usage: 'COMPONENT REVISION [REVISION]',
  summary: 'show how the input files of two revisions differ',
  description: 'Without a second revision: how the files of now differ. The content of keys is not shown.',
  flags: { root: ROOT_FLAG },
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
    for (const { name, change, lines = [] } of differences)
      out.stdout([`${name}: ${change}`, ...lines.map((line) => `  ${line}`), ''].join('\n'));
    return 0;
  },
};
