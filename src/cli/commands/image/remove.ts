import { type Command, ROOT_FLAG } from '../../command.ts';
import { openStore } from './store.ts';

export const imageRemoveCommand: Command = {
  name: 'image remove',
  usage: 'IMAGE…',
  summary: 'remove images by name or id',
  description: 'Layers in use stay until their containers are deleted.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Remove an image', 'image remove registry.example/app:1']],
  run: async ({ flags, positionals, out }) => {
    const store = await openStore(flags);
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
