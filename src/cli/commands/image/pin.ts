import { type Command, ROOT_FLAG } from '../../command.ts';
import { setPinned } from './store.ts';

export const imagePinCommand: Command = {
  name: 'image pin',
  usage: 'IMAGE…',
  summary: 'exclude images from garbage collection',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Pin an image', 'image pin registry.example/app:1']],
  run: (invocation) => setPinned(invocation, true),
};
