import type { KubeletDeps } from '../deps.ts';
import type { FileOperations } from '../housekeeping/file-operations.ts';

/**
 * Returns a function that collects facts for the Node's status. Its argument contains the types of the conditions that
 * the Node has now.
 */
export function nodeFacts(
  { host, config, runtime, conditions }: Pick<KubeletDeps, 'host' | 'config' | 'runtime' | 'conditions'>,
  fileOperations: FileOperations,
) {
  let present: ReadonlySet<string> = new Set();
  const read = fileOperations.latest(async () => {
    const [disk, images, { runtimeName, runtimeVersion }, more] = await Promise.all([
      host.fileSystem(config.paths.volumes),
      runtime.images.list(),
      runtime.version(),
      conditions?.(present) ?? [],
    ]);
    return { disk, images, runtimeVersion: `${runtimeName}://${runtimeVersion}`, more };
  });
  return (reported: ReadonlySet<string>): ReturnType<typeof read> => {
    present = reported;
    return read();
  };
}
