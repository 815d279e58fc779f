import { type Command, type Output, ROOT_FLAG, stringFlag } from '../../command.ts';
import { humanBytes } from '../../printers.ts';
import { PLATFORM_FLAG, shortId } from './store.ts';

export const imagePullCommand: Command = {
  name: 'image pull',
  usage: 'IMAGE… [--platform OS/ARCH]',
  summary: 'pull images from their registries into this host’s image store',
  description: 'Mirrors and credentials come from the bootstrap file and from registries.yaml.',
  flags: { platform: PLATFORM_FLAG, root: ROOT_FLAG },
  arguments: [1, 1000],
  values: ['image'],
  examples: [['Pull an image', 'image pull registry.example/app:1']],
  run: async ({ flags, positionals, out }) => {
    const { openPullStore } = await import('../../../host/node/images.ts');
    const store = await openPullStore(stringFlag(flags, 'root'), stringFlag(flags, 'platform'));
    for (const image of positionals) {
      const id = await store.pull(image, undefined, progressLine(image, out));
      out.stdout(`pulled ${image} (${shortId(id)})\n`);
    }
    return 0;
  },
};

/** Prints progress: one line that is overwritten on a terminal, otherwise a line for every tenth. */
function progressLine(image: string, out: Output): (done: number, total: number) => void {
  const isTerminal = process.stderr.isTTY === true;
  let shown = -1;
  return (done, total) => {
    const percent = total === 0 ? 100 : Math.floor((done * 100) / total);
    const step = isTerminal ? percent : percent - (percent % 10);
    if (step === shown) return;
    shown = step;
    const text = `pulling ${image}: ${humanBytes(done)} of ${humanBytes(total)} (${percent} %)`;
    out.stderr(isTerminal ? `\r${text}\u001b[K${percent === 100 ? '\n' : ''}` : `${text}\n`);
  };
}
