/** Resolves the pod and the container of a route. All functions throw the HttpError of the response. */
import type { ContainerStatus } from '../../runtime/port.ts';
import { attemptsOf } from '../core/pod-plan/snapshot.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodWorker } from '../pods/pod-worker.ts';
import type { RuntimeView } from '../pods/runtime-view.ts';
import { HttpError } from './http-error.ts';
import { flag, type Route } from './routes.ts';

export function workerOf(pods: Pick<PodTable, 'byName'>, route: Route): PodWorker {
  const worker = pods.byName(route.namespace, route.pod);
  if (worker === undefined || (route.uid !== '' && route.uid !== worker.uid)) {
    throw new HttpError(404, `pod does not exist`);
  }
  return worker;
}

export function runningContainer(view: RuntimeView, worker: PodWorker, name: string): ContainerStatus {
  const found = attemptsOf(view.get(worker.uid).containers, name).find((each) => each.state === 'running');
  if (found === undefined) throw new HttpError(404, `container not found (${JSON.stringify(name)})`);
  return found;
}

/**
 * Container run whose log is requested: the latest run, or the one before with `previous`. Source:
 * pkg/kubelet/kubelet_pods.go validateContainerLogStatus.
 */
export function logContainer(view: RuntimeView, worker: PodWorker, route: Route): ContainerStatus {
  const { pod, container } = route;
  const spec = worker.pod.spec;
  const known = [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])];
  if (!known.some((each) => each.name === container)) {
    throw new HttpError(404, `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} is not available`);
  }
  const attempts = attemptsOf(view.get(worker.uid).containers, container).filter((each) => each.state !== 'created');
  if (flag(route.query, 'previous')) {
    const [latest, ...older] = attempts;
    // While the container waits for its restart, the run that has just ended is the previous one.
    const waiting = latest?.state === 'exited' && waits(worker, container);
    const previous = waiting ? latest : older[0];
    if (previous === undefined) {
      throw new HttpError(
        400,
        `previous terminated container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} not found`,
      );
    }
    return previous;
  }
  const [latest] = attempts;
  if (latest === undefined) {
    const state = [...(worker.status.containerStatuses ?? []), ...(worker.status.initContainerStatuses ?? [])].find(
      (each) => each.name === container,
    )?.state;
    const reason = state?.waiting?.reason ?? 'ContainerCreating';
    throw new HttpError(
      400,
      `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod)} is waiting to start: ${reason}`,
    );
  }
  return latest;
}

function waits(worker: PodWorker, container: string): boolean {
  const statuses = [...(worker.status.containerStatuses ?? []), ...(worker.status.initContainerStatuses ?? [])];
  return statuses.find((each) => each.name === container)?.state?.waiting !== undefined;
}
