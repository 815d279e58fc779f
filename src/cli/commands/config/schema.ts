import type { Command } from '../../command.ts';

export const configSchemaCommand: Command = {
  name: 'config schema',
  usage: '',
  summary: 'print the JSON schema of the bootstrap file',
  flags: {},
  arguments: [0, 0],
  examples: [['Write the schema for an editor', 'config schema > bootstrap.schema.json']],
  run: async ({ out }) => {
    const { bootstrapSchema } = await import('../../../host/config/bootstrap.ts');
    out.stdout(`${JSON.stringify(bootstrapSchema(), undefined, 2)}\n`);
    return 0;
  },
};
