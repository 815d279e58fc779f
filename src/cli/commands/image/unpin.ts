import { type Command, ROOT_FLAG } from '../../command.ts';
import { setPinned } from './store.ts';

export const imageUnpinCommand: Command = {
  name: 'image unpin',
  usage: 'IMAGE…',
  summary: 'include pinned images in garbage collection again',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Unpin an image', 'image unpin registry.example/app:1']],
  run: (invocation) => setPinned(invocation, false),
};
