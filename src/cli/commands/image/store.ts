import { type FlagValues, type Invocation, stringFlag } from '../../command.ts';

export async function openStore(flags: FlagValues) {
  const { openImageStore } = await import('../../../host/node/images.ts');
  return openImageStore(stringFlag(flags, 'root'));
}

export const PLATFORM_FLAG = {
  type: 'string',
  value: 'OS/ARCH',
  help: 'select images of this platform, such as linux/arm64; this host may not be able to run them',
} as const;

/** Pins or releases images and prints their names. */
export async function setPinned({ flags, positionals, out }: Invocation, isPinned: boolean): Promise<number> {
  const store = await openStore(flags);
  for (const image of positionals) {
    await store.pin(image, isPinned);
    out.stdout(`${isPinned ? 'pinned' : 'unpinned'} ${image}\n`);
  }
  return 0;
}

export const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, 12);
