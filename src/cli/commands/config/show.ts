import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { CONFIG_FLAG } from './flags.ts';

export const configShowCommand: Command = {
  name: 'config show',
  usage: '[-o json|yaml]',
  summary: 'show the settings of this host and the source of each setting',
  description: 'Secrets are not shown.',
  flags: { config: CONFIG_FLAG, output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [
    ['Settings with their origin', 'config show'],
    ['One document for a program', 'config show -o json'],
  ],
  run: async ({ flags, out }) => {
    const [{ loadWithOrigins }, { effectiveFields, nestedFields }] = await Promise.all([
      import('../../../host/config/settings.ts'),
      import('../../../host/config/effective.ts'),
    ]);
    const loaded = await loadWithOrigins({ root: stringFlag(flags, 'root'), config: stringFlag(flags, 'config') });
    const fields = effectiveFields(loaded.settings, loaded.files);
    const document = await printDocument(flags, nestedFields(fields));
    out.stdout(
      document ??
        printTable(
          ['FIELD', 'VALUE', 'FROM'],
          fields.map(({ path, value, origin }) => [
            path.join('.'),
            typeof value === 'string' ? value : JSON.stringify(value),
            origin,
          ]),
        ),
    );
    return 0;
  },
};
