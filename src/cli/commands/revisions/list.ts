import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

export const revisionsListCommand: Command = {
  name: 'revisions list',
  usage: '[COMPONENT] [-o json|yaml]',
  summary: 'list the revisions of the control plane on this host',
  description: 'Reads the disk: works without an API server and without the host process.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 1],
  values: ['operand'],
  examples: [
    ['All components', 'revisions list'],
    ['One component', 'revisions list kube-apiserver'],
  ],
  run: async ({ flags, positionals: [component], out }) => {
    const { listRevisions, operandNamed } = await import('../../../host/openshift/revision-archive.ts');
    const only = component === undefined ? undefined : operandNamed(component);
    const listed = await listRevisions(stringFlag(flags, 'root'), only);
    const table = (): string =>
      printTable(
        ['COMPONENT', 'REVISION', 'STATE', 'CURRENT', 'CREATED', 'REASON'],
        listed.map((each) => [
          each.component,
          String(each.revision),
          each.state,
          each.current ? '*' : '',
          each.created,
          each.error ?? each.reason,
        ]),
      );
    out.stdout((await printDocument(flags, listed)) ?? table());
    return 0;
  },
};
