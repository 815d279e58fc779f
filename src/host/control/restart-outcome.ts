/** Outcome of a requested restart: the component is ready, or its revision failed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError } from '../../base/errors.ts';
import type { Kubelet } from '../../kubelet/index.ts';
import type { Settings } from '../config/settings.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { failedRevisions, failureMessage, revisionsOnTrial } from '../openshift/revision-archive.ts';
import type { ControlPlaneComponent } from '../openshift/revision-inputs.ts';
import { operandProcess } from '../openshift/revision-process.ts';
import { systemClock as clock } from '../process/process.ts';
import { RESTART_TIMEOUT_MS } from './control.ts';
import { controlPlaneContainers } from './restart-component.ts';

const POLL_MS = 250;
/** Time limit until the component is ready, if no new revision of it is on trial. */
const READY_TIMEOUT_MS = 60_000;

interface Restart {
  readonly settings: Settings;
  readonly runtime: HostRuntime;
  readonly kubelet: Pick<Kubelet, 'forgetBackOff'>;
  readonly component: string;
  /** ID of the container that was stopped for the restart. */
  readonly before: string;
  readonly sinceMs: number;
}

/**
 * Waits until a new container of the component is healthy. Throws CodedError 'revision-failed' or 'not-started' with
 * the last error in the component's log.
 */
export async function waitUntilRestarted(restart: Restart): Promise<void> {
  const { settings, runtime, kubelet, before, sinceMs } = restart;
  const component = restart.component as ControlPlaneComponent;
  const resources = settings.paths.staticPodResources;
  const process = operandProcess({ settings, runtime, kubelet: () => kubelet, component });
  const beganMs = clock.monotonicMs();
  const failure = async (): Promise<string | undefined> => {
    const found = (await failedRevisions(resources)).find((each) => each.component === component);
    return found === undefined ? undefined : failureMessage(found);
  };
  const known = await failure();
  for (;;) {
    const elapsedMs = clock.monotonicMs() - beganMs;
    const failed = await failure();
    if (failed !== undefined && failed !== known) throw new CodedError('revision-failed', failed);
    const onTrial = (await revisionsOnTrial(resources, component)).length > 0;
    const health = onTrial ? undefined : await process.health(sinceMs);
    const isNew = (await controlPlaneContainers(runtime)).some(
      ({ id, name, state }) => name === component && state === 'running' && id !== before,
    );
    if (isNew && health?.state === 'healthy') {
      if (failed !== undefined) throw new CodedError('revision-failed', failed);
      return;
    }
    if (
      health?.state === 'crashing' ||
      elapsedMs > (onTrial ? RESTART_TIMEOUT_MS - READY_TIMEOUT_MS : READY_TIMEOUT_MS)
    )
      throw new CodedError(
        'not-started',
        `${component}: ${health?.message ?? 'its new revision is not healthy yet'}; run: hyperedge master-logs ${component}`,
      );
    await sleep(POLL_MS);
  }
}
