/** `kustomize DIR`: prints the objects of a kustomization. */
import { ClientError } from '../../core/errors.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import { buildKustomization } from '../../kustomize/build.ts';
import type { VerbContext } from '../../port.ts';

export async function run({ args, flags, io, system }: VerbContext): Promise<number> {
  const [directory = '.', ...more] = args;
  if (more.length > 0) throw new ClientError('specify one path to kustomization.yaml');
  const objects = await buildKustomization(system, directory, io.err);
  const text = objects.map((object) => yamlText(object)).join('---\n');
  if (flags.text('output') === '') io.out(text);
  else await system.writeFile(flags.text('output'), text);
  return 0;
}
