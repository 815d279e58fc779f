import { CodedError, messageOf } from '../../base/errors.ts';
import { type Command, type FlagValues, ROOT_FLAG, stringFlag, UsageError } from '../command.ts';
import { humanBytes, OUTPUT_FLAG, printDocument, printTable } from '../printers.ts';

async function openStore(flags: FlagValues) {
  const { openImageStore } = await import('../../roles/host/images.ts');
  return openImageStore(stringFlag(flags, 'root'));
}

export const importCommand: Command = {
  usage: 'image import FILE… [--name NAME]',
  summary:
    'Imports every image of docker-archive or oci-archive files (plain, gzip or zstd) into this host’s image store.',
  description:
    'Needs no registry and no running host process. Image names are those of the archive unless --name is given.',
  flags: {
    name: { type: 'string', value: 'NAME', help: 'image name, instead of those in the archive' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [1, 1000],
  run: async ({ flags, positionals, out }) => {
    const name = stringFlag(flags, 'name');
    if (name !== undefined && positionals.length > 1) throw new UsageError('--name: give one file');
    const store = await openStore(flags);
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
        ...(wide ? [image.repoDigests.join(',') || '<none>'] : []),
      ]);
    });
    out.stdout(printTable(['NAME', 'ID', 'SIZE', ...(wide ? ['DIGESTS'] : [])], rows));
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
        out.stderr(`hyperedge: image ${image} is not in the store: see hyperedge image list\n`);
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

const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, 12);
