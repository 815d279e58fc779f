/** Reads objects from files, directories, stdin and URLs (flag `-f`). */
import { matchesLabels, parseLabelSelector } from '../base/selector.ts';
import { ClientError } from './core/errors.ts';
import type { FlagSpecs } from './core/flags.ts';
import { type AnyObject, objectsIn } from './core/objects.ts';
import { documentsIn } from './documents.ts';
import type { VerbContext } from './port.ts';

export const FILE_FLAGS: FlagSpecs = {
  filename: { type: 'list', short: 'f', value: 'FILE', help: 'file, directory, URL, or - for stdin' },
  recursive: { type: 'bool', short: 'R', help: 'include sub-directories' },
  kustomize: { type: 'string', short: 'k', value: 'DIR', help: 'directory with a kustomization' },
};

export interface Manifest {
  readonly source: string;
  readonly object: AnyObject;
}

/** Maximum size of a manifest, so that a wrong file name does not fill the memory. */
const MAX_BYTES = 64 << 20;

/**
 * Objects in the order of the flags, without those that do not match the label selector. Throws ClientError with the
 * name of a file that cannot be read.
 */
export async function manifestsOf(
  context: VerbContext,
  selector: string = context.flags.text('selector'),
): Promise<Manifest[]> {
  const manifests = await allManifests(context);
  if (selector === '') return manifests;
  const parsed = parseLabelSelector(selector);
  return manifests.filter(({ object }) => matchesLabels(parsed, object.metadata?.labels));
}

async function allManifests({ flags, system, io }: VerbContext): Promise<Manifest[]> {
  if (flags.has('kustomize')) {
    if (flags.has('filename')) throw new ClientError('only one of -f or -k can be specified');
    const directory = flags.text('kustomize');
    const { buildKustomization } = await import('./kustomize/build.ts');
    return (await buildKustomization(system, directory, io.err)).map((object) => ({ source: directory, object }));
  }
  const manifests: Manifest[] = [];
  for (const source of flags.list('filename')) {
    if (source === '-') manifests.push(...(await parse('STDIN', await io.readAll())));
    else if (/^https?:\/\//.test(source)) manifests.push(...(await parse(source, await system.fetchText(source))));
    else {
      const paths = await system.manifestFiles(source, flags.bool('recursive'));
      if (paths.length === 0)
        throw new ClientError(`error reading [${source}]: recognized file extensions are [.json .yaml .yml]`);
      for (const path of paths) {
        const bytes = await system.readFile(path);
        if (bytes.length > MAX_BYTES) throw new ClientError(`${path}: larger than ${MAX_BYTES >> 20} MiB`);
        manifests.push(...(await parse(path, Buffer.from(bytes).toString('utf8'))));
      }
    }
  }
  return manifests;
}

async function parse(source: string, text: string): Promise<Manifest[]> {
  const documents = await documentsIn(source, text);
  return documents.flatMap((document) => objectsIn(document, source).map((object) => ({ source, object })));
}

/** Like `manifestsOf`. Throws ClientError if neither `-f` nor `-k` was given, or if there are no objects. */
export async function requiredManifests(context: VerbContext, verb: string): Promise<Manifest[]> {
  if (!context.flags.has('filename') && !context.flags.has('kustomize'))
    throw new ClientError('must specify one of -f and -k');
  const manifests = await manifestsOf(context);
  if (manifests.length === 0) throw new ClientError(`no objects passed to ${verb}`);
  return manifests;
}
