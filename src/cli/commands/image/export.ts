import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { openStore } from './store.ts';

export const imageExportCommand: Command = {
  name: 'image export',
  usage: 'IMAGE… --output FILE',
  summary: 'write images to a docker-archive file, for image import on another host',
  description: 'Layers are packed again from their files: the id of an imported copy may differ.',
  flags: { output: { type: 'string', value: 'FILE', help: 'file to create; it must not exist' }, root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Export an image', 'image export registry.example/app:1 --output app.tar']],
  run: async ({ flags, positionals, out, progress }) => {
    const file = stringFlag(flags, 'output');
    if (file === undefined) throw new UsageError('--output: give the file to write');
    const store = await openStore(flags);
    await transferring(progress, `packing ${file}`, (onProgress) => store.exportArchive(positionals, file, onProgress));
    out.stdout(`exported ${positionals.join(', ')} to ${file}\n`);
    return 0;
  },
};
