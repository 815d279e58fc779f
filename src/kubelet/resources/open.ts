import { dirname } from 'node:path';
import { quantityMilliValue, tryParseQuantity } from '../../base/quantity.ts';
import type { KubeletDeps } from '../deps.ts';
import { ContainerManager } from './container-manager.ts';

/** Throws an Error that names the argument which exceeds the host's resources. */
export async function openContainerManager(deps: KubeletDeps, onChanged: () => void): Promise<ContainerManager> {
  const { config, files, host, log } = deps;
  const cpu = [config.systemReserved['cpu'], config.kubeReserved['cpu']].map((text) => tryParseQuantity(text ?? '0'));
  const made = new ContainerManager({
    policies: config.resources,
    machine: await host.topology(),
    reservedMilli: cpu.reduce((sum, each) => sum + (each === undefined ? 0 : quantityMilliValue(each)), 0),
    directory: config.paths.state ?? dirname(config.paths.volumes),
    files: { read: (path) => files.manifests.read(path).catch(() => ''), replace: files.pods.replace },
    log: log.named('resources'),
    onChanged,
  });
  await made.start();
  return made;
}
