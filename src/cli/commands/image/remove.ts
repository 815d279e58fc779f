import { bytesText } from '../../../base/text/bytes-text.ts';
import { type Command, ROOT_FLAG, UsageError } from '../../command.ts';
import { openStore, shortId } from './store.ts';

export const imageRemoveCommand: Command = {
  name: 'image remove',
  usage: 'IMAGE…|--unused',
  summary: 'remove images by name or id, or all unused ones',
  description: 'Layers in use stay until their containers are deleted. --unused keeps pinned images.',
  flags: {
    unused: { type: 'boolean', help: 'all images that no container of this host uses' },
    root: ROOT_FLAG,
  },
  arguments: [0, 1000],
  values: ['image'],
  examples: [
    ['Remove an image', 'image remove registry.example/app:1'],
    ['Free disk space', 'image remove --unused'],
  ],
  run: async ({ flags, positionals, out }) => {
    const isUnused = flags['unused'] === true;
    if (isUnused !== (positionals.length === 0)) throw new UsageError('give images or --unused');
    const store = await openStore(flags);
    if (isUnused) {
      const removed = await store.removeUnused();
      for (const { id, repoTags, sizeBytes } of removed)
        out.stdout(`removed ${repoTags[0] ?? shortId(id)}, ${bytesText(sizeBytes)}\n`);
      if (removed.length === 0) out.stdout('every image is in use or pinned\n');
      await store.collectGarbage();
      return 0;
    }
    let missing = 0;
    for (const image of positionals) {
      if ((await store.status(image)) === undefined) {
        out.stderr(`hyperedge: image ${image} is not in the store; see hyperedge image list\n`);
        missing++;
        continue;
      }
      await store.remove(image);
      out.stdout(`removed ${image}\n`);
    }
    await store.collectGarbage();
    return missing === 0 ? 0 : 1;
  },
};
