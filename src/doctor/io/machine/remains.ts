/** Finds mounts and network namespaces of pods for which the runtime has no record. */
import { join } from 'node:path';
import type { LeftoverFacts } from '../../port.ts';
import { parseMounts } from './kernel.ts';
import { entriesOf, textOf } from './read.ts';

export interface RuntimeDirectories {
  /** Directory with records of sandboxes and containers. */
  readonly state: string;
  /** Directory with pinned namespaces and with mounts. */
  readonly run: string;
  /** Directory with the volumes of pods, by UID of the pod. */
  readonly volumes: string;
  /** Directory with the logs of pods. The kubelet removes a pod's logs after the pod. */
  readonly logs: string;
}

const MAX_REMAINS = 200;

export async function readRemains(machine: string, directories: RuntimeDirectories): Promise<LeftoverFacts> {
  const { state, run, volumes, logs } = directories;
  const [sandboxes, containers, memorySandboxes, memoryContainers, logNames] = await Promise.all([
    entriesOf(join(state, 'sandboxes')),
    entriesOf(join(state, 'containers')),
    entriesOf(join(run, 'memory/sandboxes')),
    entriesOf(join(run, 'memory/containers')),
    entriesOf(logs),
  ]);
  const ids = new Set([...sandboxes, ...containers, ...memorySandboxes, ...memoryContainers]);
  const uids = new Set(logNames.map((name) => name.split('_').at(-1) ?? ''));
  const points = parseMounts(await textOf(join(machine, 'proc/self/mountinfo'), 8 << 20)).map(({ point }) => point);
  const partAfter = (point: string, directory: string): string | undefined =>
    point.startsWith(`${directory}/`) ? point.slice(directory.length + 1).split('/')[0] : undefined;
  const mounts: string[] = [];
  const namespaces: string[] = [];
  for (const point of points) {
    const sandbox = partAfter(point, join(run, 'sandboxes'));
    const container = partAfter(point, join(state, 'containers')) ?? partAfter(point, join(run, 'mapped'));
    const pod = partAfter(point, join(volumes, 'pods'));
    if (sandbox !== undefined && !ids.has(sandbox)) (point.endsWith('/net') ? namespaces : mounts).push(point);
    else if (container !== undefined && !ids.has(container)) mounts.push(point);
    else if (pod !== undefined && !uids.has(pod)) mounts.push(point);
  }
  return { mounts: mounts.slice(0, MAX_REMAINS), namespaces: namespaces.slice(0, MAX_REMAINS) };
}
