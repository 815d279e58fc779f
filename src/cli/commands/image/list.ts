import { bytesText } from '../../../base/text/bytes-text.ts';
import { type Command, ROOT_FLAG } from '../../command.ts';
import { OUTPUT_FLAG, printDocument, printTable } from '../../printers.ts';
import { openStore, shortId } from './store.ts';

export const imageListCommand: Command = {
  name: 'image list',
  usage: '[-o json|yaml|wide]',
  summary: 'list the images of this host',
  flags: { output: OUTPUT_FLAG, root: ROOT_FLAG },
  arguments: [0, 0],
  examples: [['Images with digests', 'image list -o wide']],
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
        bytesText(image.sizeBytes),
        ...(wide ? [image.repoDigests.join(',') || '<none>', image.pinned === true ? 'yes' : 'no'] : []),
      ]);
    });
    out.stdout(printTable(['NAME', 'ID', 'SIZE', ...(wide ? ['DIGESTS', 'PINNED'] : [])], rows));
    return 0;
  },
};
