import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

function revisionOf(text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(
      `revision "${text ?? ''}": give the number of a revision, as hyperedge revisions list shows it`,
    );
  return Number(text);
}

export const listCommand: Command = {
  usage: 'revisions list [COMPONENT] [-o json|yaml]',
  summary: 'Lists the revisions of the control plane that are on this host.',
  description: 'Reads the disk: works without an API server and without the host process.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 1],
  run: async ({ flags, positionals: [component], out }) => {
    checkFormat(flags);
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

export const diffCommand: Command = {
  usage: 'revisions diff COMPONENT REVISION [REVISION]',
  summary: 'Shows how the input files of two revisions differ.',
  description: 'Without a second revision: how the files of now differ. The content of keys is not shown.',
  flags: { root: ROOT_FLAG },
  arguments: [2, 3],
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

export const rollbackCommand: Command = {
  usage: 'revisions rollback COMPONENT REVISION [--all]',
  summary: 'Restores the configuration files of a revision.',
  description: 'The host process installs them as a new revision. Settings of the operator’s object stay.',
  flags: { all: { type: 'boolean', help: 'certificates and keys too' }, root: ROOT_FLAG },
  arguments: [2, 2],
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
