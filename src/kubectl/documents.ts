/** Documents of YAML and JSON files. */
import { messageOf } from '../base/errors.ts';
import { ClientError } from './core/errors.ts';

/** Parses the documents of a file. Throws ClientError with the source and the position of an error. */
export async function documentsIn(source: string, text: string, version: '1.1' | '1.2' = '1.1'): Promise<unknown[]> {
  try {
    if (text.trimStart().startsWith('{') && !/^---/m.test(text)) return [JSON.parse(text)];
  } catch {
    // The text is not JSON; it may be YAML in flow style.
  }
  const { parseAllDocuments } = await import('yaml');
  const documents = parseAllDocuments(text, { version, uniqueKeys: true, merge: true });
  return [...documents].map((document) => {
    const [error] = document.errors ?? [];
    if (error !== undefined)
      throw new ClientError(
        `error parsing ${source}: error converting YAML to JSON: yaml: ${messageOf(error).split('\n')[0]}`,
      );
    return document.toJS({ maxAliasCount: 100 });
  });
}
