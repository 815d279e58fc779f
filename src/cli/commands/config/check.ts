import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { CONFIG_FLAG } from './flags.ts';

export const configCheckCommand: Command = {
  name: 'config check',
  usage: '[--config FILE] [-o json|yaml]',
  summary: 'check the bootstrap file and its drop-ins',
  description: 'Prints the first error with file, line and field. Changes nothing.',
  flags: { config: CONFIG_FLAG, output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Check a file before it is installed', 'config check --config bootstrap.yaml']],
  run: async ({ flags, out }) => {
    const { loadWithOrigins } = await import('../../../host/config/settings.ts');
    const { settings, files } = await loadWithOrigins({
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
    });
    const paths = files?.paths ?? [];
    const text =
      paths.length === 0
        ? `${settings.bootstrapFile} does not exist; the defaults apply\n`
        : paths.map((path) => `${path}: ok\n`).join('');
    out.stdout((await printDocument(flags, { valid: true, files: paths })) ?? text);
    return 0;
  },
};
