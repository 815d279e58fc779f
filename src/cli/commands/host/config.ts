import { type Command, type Flag, ROOT_FLAG, stringFlag } from '../../command.ts';
import { checkFormat, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

const CONFIG_FLAG: Flag = {
  type: 'string',
  value: 'FILE',
  help: 'bootstrap file (default /etc/origin/bootstrap.yaml); drop-ins are in FILE.d',
};

export const checkCommand: Command = {
  usage: 'config check [--config FILE]',
  summary: 'Checks the bootstrap file and its drop-ins.',
  description: 'Prints the first mistake with file, line and field. Changes nothing.',
  flags: { config: CONFIG_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const { loadWithOrigins } = await import('../../../host/config/settings.ts');
    const { settings, files } = await loadWithOrigins({
      root: stringFlag(flags, 'root'),
      config: stringFlag(flags, 'config'),
    });
    const paths = files?.paths ?? [];
    out.stdout(
      paths.length === 0
        ? `${settings.bootstrapFile} does not exist; the defaults apply\n`
        : paths.map((path) => `${path}: ok\n`).join(''),
    );
    return 0;
  },
};

export const showCommand: Command = {
  usage: 'config show [-o json|yaml]',
  summary: 'Shows the settings of this host and where each is from.',
  description: 'Secrets are not shown.',
  flags: { config: CONFIG_FLAG, output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    checkFormat(flags);
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

export const schemaCommand: Command = {
  usage: 'config schema',
  summary: 'Prints the JSON schema of the bootstrap file.',
  flags: {},
  arguments: [0, 0],
  run: async ({ out }) => {
    const { bootstrapSchema } = await import('../../../host/config/bootstrap.ts');
    out.stdout(`${JSON.stringify(bootstrapSchema(), undefined, 2)}\n`);
    return 0;
  },
};
