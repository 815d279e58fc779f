import type { Progress, Transfer } from '../../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { ImageStore } from '../../../host/node/images.ts';
import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { PLATFORM_FLAG, shortId } from './store.ts';

export const imageImportCommand: Command = {
  name: 'image import',
  usage: 'FILE… [--name NAME] [--platform OS/ARCH]',
  summary: 'import images from docker-archive or oci-archive files',
  description:
    'Imports every image of the archives (plain, gzip or zstd) into this host’s image store. Needs no registry and no\n' +
    'running host process. Image names are those of the archive unless --name is given.',
  flags: {
    name: { type: 'string', value: 'NAME', help: 'image name, instead of those in the archive' },
    output: OUTPUT_FLAG,
    platform: PLATFORM_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [1, 1000],
  values: ['file'],
  examples: [
    ['Import an archive', 'image import app.tar'],
    ['Import under another name', 'image import app.tar --name registry.example/app:1'],
  ],
  run: async ({ flags, positionals, out, progress }) => {
    const name = stringFlag(flags, 'name');
    if (name !== undefined && positionals.length > 1) throw new UsageError('--name: give one file');
    const { openImportStore } = await import('../../../host/node/images.ts');
    const store = await openImportStore(stringFlag(flags, 'root'), stringFlag(flags, 'platform'));
    const imported: { id: string; names: readonly string[] }[] = [];
    for (const file of positionals) {
      const images = await importing(progress, file, (onProgress) => store.importArchive(file, name, onProgress));
      for (const image of images) {
        imported.push({ id: image.id, names: image.names });
        if (flags['output'] === undefined) out.stdout(`imported ${image.names.join(', ')} (${shortId(image.id)})\n`);
      }
    }
    out.stdout((await printDocument(flags, imported)) ?? '');
    return 0;
  },
};

type OnImportProgress = NonNullable<Parameters<ImageStore['importArchive']>[2]>;

/** Runs an import and shows the progress of each stage as a transfer. */
async function importing<T>(
  progress: Progress,
  file: string,
  work: (onProgress: OnImportProgress) => Promise<T>,
): Promise<T> {
  let stage: string | undefined;
  let transfer: Transfer | undefined;
  try {
    const result = await work((next, done, total) => {
      if (next !== stage) {
        transfer?.end();
        transfer = progress.transfer(`${next} ${file}`);
        stage = next;
      }
      transfer?.update(done, total);
    });
    transfer?.end();
    return result;
  } catch (error) {
    transfer?.abandon();
    return throwFrom(file, error);
  }
}

function throwFrom(file: string, error: unknown): never {
  const message = messageOf(error);
  throw message.includes(file) ? error : new CodedError('bad-archive', `${file}: ${message}`, { cause: error });
}
