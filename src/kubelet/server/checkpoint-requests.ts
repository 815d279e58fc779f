/** `POST /checkpoint/NAMESPACE/POD/CONTAINER`. Source: KEP-2008; pkg/kubelet/server checkpoint. */

import { dirname, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { Runtime } from '../../runtime/port.ts';
import type { KubeletConfig } from '../config/kubelet-config.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import { HttpError } from './http-error.ts';
import { runningContainer, workerOf } from './route-target.ts';
import type { Route } from './routes.ts';

export interface CheckpointDeps {
  readonly pods: Pick<PodTable, 'byName'>;
  readonly view: RuntimeView;
  readonly runtime: Runtime;
  readonly config: KubeletConfig;
}

/** Returns the response, which contains the archive's path on this node. Throws HttpError. */
export async function checkpointContainer(deps: CheckpointDeps, route: Route, nowMs: number): Promise<object> {
  const { pods, view, runtime, config } = deps;
  const { namespace, pod, container } = route;
  const status = runningContainer(view, workerOf(pods, route), container);
  const failed = `checkpointing of ${namespace}/${pod}/${container} failed`;
  if (runtime.checkpointContainer === undefined)
    throw new HttpError(404, `${failed} (the container runtime does not implement CheckpointContainer)`);
  const stamp = timestamp(nowMs);
  const name = `checkpoint-${pod}_${namespace}-${container}-${stamp}.tar`;
  const location = join(config.paths.state ?? dirname(config.paths.volumes), 'checkpoints', name);
  try {
    await runtime.checkpointContainer(status.id, location);
  } catch (error) {
    throw new HttpError(500, `${failed} (${messageOf(error)})`);
  }
  return { items: [location] };
}
