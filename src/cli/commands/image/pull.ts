import { transferring } from '../../../base/command-line/progress.ts';
import { type Command, ROOT_FLAG, stringFlag } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { PLATFORM_FLAG, shortId } from './store.ts';

export const imagePullCommand: Command = {
  name: 'image pull',
  usage: 'IMAGE… [--platform OS/ARCH] [-o json|yaml]',
  summary: 'pull images from their registries into this host’s image store',
  description: 'Mirrors and credentials come from the bootstrap file and from registries.yaml.',
  flags: { output: OUTPUT_FLAG, platform: PLATFORM_FLAG, root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Pull an image', 'image pull registry.example/app:1']],
  run: async ({ flags, positionals, out, progress }) => {
    const { openPullStore } = await import('../../../host/node/images.ts');
    const store = await openPullStore(stringFlag(flags, 'root'), stringFlag(flags, 'platform'));
    const pulled: { readonly id: string; readonly image: string }[] = [];
    for (const image of positionals) {
      const id = await transferring(progress, `pulling ${image}`, (onProgress) =>
        store.pull(image, undefined, onProgress),
      );
      pulled.push({ id, image });
      if (flags['output'] === undefined) out.stdout(`pulled ${image} (${shortId(id)})\n`);
    }
    out.stdout((await printDocument(flags, pulled)) ?? '');
    return 0;
  },
};
