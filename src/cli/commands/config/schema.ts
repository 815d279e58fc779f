import type { Command } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';

export const configSchemaCommand: Command = {
  name: 'config schema',
  usage: '[-o json|yaml]',
  summary: 'print the JSON schema of the bootstrap file',
  flags: { output: OUTPUT_FLAG },
  arguments: [0, 0],
  examples: [['Write the schema for an editor', 'config schema > bootstrap.schema.json']],
  run: async ({ flags, out }) => {
    const { bootstrapSchema } = await import('../../../host/config/bootstrap.ts');
    const schema = bootstrapSchema();
    out.stdout((await printDocument(flags, schema)) ?? `${JSON.stringify(schema, undefined, 2)}\n`);
    return 0;
  },
};
