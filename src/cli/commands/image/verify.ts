import { type Command, ROOT_FLAG } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { openStore } from './store.ts';

export const imageVerifyCommand: Command = {
  name: 'image verify',
  usage: '[IMAGE] [-o json|yaml]',
  summary: 'verify the stored files of all images, or of one, against their digests',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 1],
  values: ['image'],
  examples: [['Verify all images', 'image verify']],
  run: async ({ flags, positionals, out }) => {
    const store = await openStore(flags);
    const faults = await store.verify(positionals[0]);
    for (const fault of faults) out.stderr(`hyperedge: ${fault}\n`);
    const document = await printDocument(flags, { faults });
    out.stdout(document ?? (faults.length === 0 ? 'all images are intact\n' : ''));
    return faults.length === 0 ? 0 : 1;
  },
};
