import { CodedError, messageOf } from '../../../base/errors.ts';
import { type Command, type FlagValues, type Output, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { humanBytes, OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';

async function openStore(flags: FlagValues) {
  const { openImageStore } = await import('../../../host/node/images.ts');
  return openImageStore(stringFlag(flags, 'root'));
}

const PLATFORM_FLAG = {
  type: 'string',
  value: 'OS/ARCH',
  help: 'take images of this platform, such as linux/arm64, although they may not run here',
} as const;

export const importCommand: Command = {
  usage: 'image import FILE… [--name NAME] [--platform OS/ARCH]',
  summary:
    'Imports every image of docker-archive or oci-archive files (plain, gzip or zstd) into this host’s image store.',
  description:
    'Needs no registry and no running host process. Image names are those of the archive unless --name is given.',
  flags: {
    name: { type: 'string', value: 'NAME', help: 'image name, instead of those in the archive' },
    output: OUTPUT_FLAG,
    platform: PLATFORM_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [1, 1000],
  run: async ({ flags, positionals, out }) => {
    const name = stringFlag(flags, 'name');
    if (name !== undefined && positionals.length > 1) throw new UsageError('--name: give one file');
    const { openImportStore } = await import('../../../host/node/images.ts');
    const store = await openImportStore(stringFlag(flags, 'root'), stringFlag(flags, 'platform'));
    const imported: { id: string; names: readonly string[] }[] = [];
    for (const file of positionals) {
      for (const image of await store.importArchive(file, name).catch((error: unknown) => throwFrom(file, error))) {
        imported.push({ id: image.id, names: image.names });
        if (flags['output'] === undefined) out.stdout(`imported ${image.names.join(', ')} (${shortId(image.id)})\n`);
      }
    }
    out.stdout((await printDocument(flags, imported)) ?? '');
    return 0;
  },
};

function throwFrom(file: string, error: unknown): never {
  const message = messageOf(error);
  throw message.includes(file) ? error : new CodedError('bad-archive', `${file}: ${message}`, { cause: error });
}

export const listCommand: Command = {
  usage: 'image list [-o json|yaml|wide]',
  summary: 'Lists the images of this host.',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  run: async ({ flags, out }) => {
    const images = await (await openStore(flags)).list();
    const document = await printDocument(flags, images);
    if (document !== undefined) {
      out.stdout(document);
      return 0;
    }
    const wide = flags['output'] === 'wide';
    const rows = images.flatMap((image) => {
      const names =
        image.repoTags.length > 0 ? image.repoTags : image.repoDigests.length > 0 ? image.repoDigests : ['<none>'];
      return names.map((name) => [
        name,
        wide ? image.id : shortId(image.id),
        humanBytes(image.sizeBytes),
        ...(wide ? [image.repoDigests.join(',') || '<none>', image.pinned === true ? 'yes' : 'no'] : []),
      ]);
    });
    out.stdout(printTable(['NAME', 'ID', 'SIZE', ...(wide ? ['DIGESTS', 'PINNED'] : [])], rows));
    return 0;
  },
};

export const removeCommand: Command = {
  usage: 'image remove IMAGE…',
  summary: 'Removes images by name or id; layers in use stay until their containers are deleted.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1000],
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

export const verifyCommand: Command = {
  usage: 'image verify [IMAGE]',
  summary: 'Compares the stored files of all images, or of one, with their digests.',
  flags: { root: ROOT_FLAG },
  arguments: [0, 1],
  run: async ({ flags, positionals, out }) => {
    const store = await openStore(flags);
    const faults = await store.verify(positionals[0]);
    for (const fault of faults) out.stderr(`hyperedge: ${fault}\n`);
    if (faults.length === 0) out.stdout('all images are intact\n');
    return faults.length === 0 ? 0 : 1;
  },
};

export const exportCommand: Command = {
  usage: 'image export IMAGE… --output FILE',
  summary: 'Writes images to a docker-archive file, for image import on another host.',
  description: 'Layers are packed again from their files: the id of an imported copy may differ.',
  flags: { output: { type: 'string', value: 'FILE', help: 'a file that does not exist' }, root: ROOT_FLAG },
  arguments: [1, 1000],
  run: async ({ flags, positionals, out }) => {
    const file = stringFlag(flags, 'output');
    if (file === undefined) throw new UsageError('--output: name the file to write');
    await (await openStore(flags)).exportArchive(positionals, file);
    out.stdout(`exported ${positionals.join(', ')} to ${file}\n`);
    return 0;
  },
};

export const pullCommand: Command = {
  usage: 'image pull IMAGE… [--platform OS/ARCH]',
  summary: 'Pulls images from their registries into this host’s image store.',
  description: 'Mirrors and credentials come from the bootstrap file and from registries.yaml.',
  flags: { platform: PLATFORM_FLAG, root: ROOT_FLAG },
  arguments: [1, 1000],
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

const pinningCommand = (verb: 'pin' | 'unpin'): Command => ({
  usage: `image ${verb} IMAGE…`,
  summary:
    verb === 'pin' ? 'Keeps images when the disk fills: garbage collection leaves them.' : 'Releases pinned images.',
  flags: { root: ROOT_FLAG },
  arguments: [1, 1000],
  run: async ({ flags, positionals, out }) => {
    const store = await openStore(flags);
    for (const image of positionals) {
      await store.pin(image, verb === 'pin');
      out.stdout(`${verb}ned ${image}\n`);
    }
    return 0;
  },
});

export const pinCommand: Command = pinningCommand('pin');
export const unpinCommand: Command = pinningCommand('unpin');

const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, 12);
