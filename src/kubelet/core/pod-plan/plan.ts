/**
 * Plans the next actions for a pod from its spec and the observed state. Level-triggered: the caller executes the
 * actions, observes again and plans again until no actions are left. Source: kuberuntime computePodActions, KEP-753
 * (sidecars), KEP-277 (ephemeral containers).
 */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import type { ContainerStatus, SandboxStatus } from '../../../runtime/port.ts';
import { type BackOffEntry, backOffUntil, goSeconds, restartLimits } from './back-off.ts';
import { containerHash } from './hash.ts';
import { type RestartRound, restartRound, restartsAfter, shouldStart } from './restart.ts';
import {
  ANNOTATIONS,
  attemptsOf,
  containersOf,
  ephemeralContainersOf,
  initContainersOf,
  isSidecar,
  lostContainers,
  type PodSnapshot,
  type ProbeResults,
  readySandboxes,
  restartPolicyOf,
  type WaitingReason,
} from './snapshot.ts';

export type ContainerKind = 'init' | 'sidecar' | 'app' | 'ephemeral';

export type PodAction =
  /** The sandboxes in `replaces` are stopped first, because their network addresses would otherwise leak. */
  | { readonly type: 'createSandbox'; readonly attempt: number; readonly replaces: readonly string[] }
  | { readonly type: 'stopSandbox'; readonly sandboxId: string }
  | {
      readonly type: 'killContainer';
      readonly containerId: string;
      readonly name: string;
      readonly graceSeconds: number;
      readonly message: string;
    }
  | {
      readonly type: 'startContainer';
      readonly name: string;
      readonly kind: ContainerKind;
      readonly sandboxId: string;
      readonly attempt: number;
      /** End of the previous run, for the back-off; undefined for the first run. */
      readonly lastFinishedAtMs: number | undefined;
    };

export interface PodPlan {
  readonly actions: readonly PodAction[];
  /** By container name, the reason why a container that is due to start must wait. */
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  /** Time at which to plan again without a further event. */
  readonly wakeAtMs: number | undefined;
  /** Whether no container runs or will run again. The pod's volumes and cgroup can then be removed. */
  readonly finished: boolean;
  /** Whether the pod has exceeded its activeDeadlineSeconds. */
  readonly deadlineExceeded: boolean;
}

const MIN_GRACE_SECONDS = 2;
const DEFAULT_GRACE_SECONDS = 30;

export function planPod(snapshot: PodSnapshot, nowMs: number): PodPlan {
  const { pod } = snapshot;
  if (snapshot.termination !== undefined) {
    const { startedAtMs, graceSeconds } = snapshot.termination;
    return planEnd(snapshot, graceSeconds, startedAtMs, nowMs, { deadlineExceeded: false });
  }
  const deadlineAtMs = deadlineOf(snapshot);
  if (deadlineAtMs !== undefined && nowMs >= deadlineAtMs) {
    return planEnd(snapshot, graceOf(pod), deadlineAtMs, nowMs, { deadlineExceeded: true });
  }
  return new Planner(snapshot, nowMs, deadlineAtMs).plan();
}

export function graceOf(pod: Pod): number {
  return Number(pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS);
}

function deadlineOf(snapshot: PodSnapshot): number | undefined {
  const seconds = snapshot.pod.spec?.activeDeadlineSeconds;
  return seconds === undefined ? undefined : snapshot.startedAtMs + seconds * 1000;
}

/** Stops the containers first, then the sidecars one by one from the last, then the sandbox. */
function planEnd(
  snapshot: PodSnapshot,
  graceSeconds: number,
  sinceMs: number,
  nowMs: number,
  { deadlineExceeded }: { readonly deadlineExceeded: boolean },
): PodPlan {
  const running = snapshot.containers.filter((status) => status.state === 'running');
  const done = (actions: readonly PodAction[]): PodPlan => ({
    actions,
    waiting: new Map(),
    wakeAtMs: undefined,
    finished: actions.length === 0,
    deadlineExceeded,
  });
  const sidecars = initContainersOf(snapshot.pod).filter(isSidecar);
  const first = running.filter((status) => !sidecars.some((sidecar) => sidecar.name === status.name));
  if (first.length > 0)
    return done(first.map((status) => kill(status, graceSeconds, `Stopping container ${status.name}`)));
  if (running.length > 0) {
    const left = Math.max(MIN_GRACE_SECONDS, graceSeconds - Math.floor((nowMs - sinceMs) / 1000));
    const last = sidecars.findLast((sidecar) => running.some((status) => status.name === sidecar.name));
    return done(
      running
        .filter((status) => status.name === last?.name)
        .map((status) => kill(status, Math.min(graceSeconds, left), `Stopping container ${status.name}`)),
    );
  }
  return done(
    readySandboxes(snapshot.sandboxes).map((sandbox): PodAction => ({ type: 'stopSandbox', sandboxId: sandbox.id })),
  );
}

const kill = (status: ContainerStatus, graceSeconds: number, message: string): PodAction => ({
  type: 'killContainer',
  containerId: status.id,
  name: status.name,
  graceSeconds,
  message,
});

class Planner {
  readonly #snapshot: PodSnapshot;
  readonly #round: RestartRound | undefined;
  /** Containers reported by the runtime, followed by started containers that it has lost. */
  readonly #all: readonly ContainerStatus[];
  readonly #hasLost: boolean;
  /** Containers of the current restart round, on which decisions are based. */
  readonly #containers: readonly ContainerStatus[];
  readonly #nowMs: number;
  readonly #actions: PodAction[] = [];
  readonly #waiting = new Map<string, WaitingReason>();
  #wakeAtMs: number | undefined;

  constructor(snapshot: PodSnapshot, nowMs: number, deadlineAtMs: number | undefined) {
    this.#snapshot = snapshot;
    const lost = lostContainers(snapshot);
    this.#hasLost = lost.length > 0;
    this.#all = [...snapshot.containers, ...lost];
    this.#round = restartRound(snapshot.pod, this.#all);
    this.#containers = this.#round?.current ?? this.#all;
    this.#nowMs = nowMs;
    this.#wakeAtMs = deadlineAtMs;
  }

  plan(): PodPlan {
    const { pod, sandboxes } = this.#snapshot;
    const ready = readySandboxes(sandboxes);
    const [sandbox] = ready;
    if (sandbox === undefined || ready.length > 1 || !usable(sandbox, pod)) return this.#planNewSandbox();
    this.#startEphemeral(sandbox);
    if (this.#endRound()) return this.#result();
    if (!this.#initialised(sandbox) && !this.#runInit(sandbox)) return this.#result();
    if (this.#initFailed(sandbox)) return this.#end();
    this.#keepSidecars(sandbox);
    const alive = this.#runContainers(sandbox);
    return alive ? this.#result() : this.#end();
  }

  #result(): PodPlan {
    return {
      actions: this.#actions,
      waiting: this.#waiting,
      wakeAtMs: this.#wakeAtMs,
      finished: false,
      deadlineExceeded: false,
    };
  }

  #end(): PodPlan {
    return planEnd(this.#snapshot, graceOf(this.#snapshot.pod), this.#nowMs, this.#nowMs, { deadlineExceeded: false });
  }

  #planNewSandbox(): PodPlan {
    const { pod, sandboxes } = this.#snapshot;
    const containers = this.#all;
    const running = containers.filter((status) => status.state === 'running');
    const policy = restartPolicyOf(pod);
    const attempt = sandboxes.reduce((highest, sandbox) => Math.max(highest, sandbox.attempt + 1), 0);
    const wanted = containersOf(pod).some((container) =>
      shouldStart(pod, container, attemptsOf(containers, container.name)[0]),
    );
    const started = containers.some((status) => status.state !== 'created');
    const initFailed = initContainersOf(pod).some((container) =>
      failedForGood(pod, container, attemptsOf(containers, container.name)[0]),
    );
    const isSecond = attempt > 0 || this.#hasLost;
    if (!wanted || initFailed || (policy === 'Never' && isSecond && started)) return this.#end();
    for (const status of running) {
      this.#actions.push(kill(status, graceOf(pod), 'Pod sandbox changed, it will be killed and re-created.'));
    }
    if (running.length > 0) return this.#result();
    this.#actions.push({ type: 'createSandbox', attempt, replaces: sandboxes.map((sandbox) => sandbox.id) });
    return this.#result();
  }

  /**
   * Stops containers that started before the latest restart of all containers (KEP-5532). Returns false if there are
   * none, so the current round continues.
   */
  #endRound(): boolean {
    const { old = [] } = this.#round ?? {};
    const { pod } = this.#snapshot;
    for (const status of old)
      this.#actions.push(kill(status, graceOf(pod), `Container ${status.name} will be restarted with all containers`));
    return old.length > 0;
  }

  #startEphemeral(sandbox: SandboxStatus): void {
    for (const container of ephemeralContainersOf(this.#snapshot.pod)) {
      if (attemptsOf(this.#all, container.name).length === 0) {
        this.#start(container.name, 'ephemeral', sandbox, undefined);
      }
    }
  }

  /**
   * Whether a regular container has run in this sandbox. Then init containers are not run again, and sidecars are only
   * kept running.
   */
  #initialised(sandbox: SandboxStatus): boolean {
    return containersOf(this.#snapshot.pod).some((container) =>
      this.#inSandbox(container.name, sandbox).some(
        (status) => status.state === 'running' || status.state === 'exited',
      ),
    );
  }

  #inSandbox(name: string, sandbox: SandboxStatus): ContainerStatus[] {
    return attemptsOf(this.#containers, name).filter((status) => status.sandboxId === sandbox.id);
  }

  #initFailed(sandbox: SandboxStatus): boolean {
    const { pod } = this.#snapshot;
    return initContainersOf(pod).some((container) =>
      failedForGood(pod, container, this.#inSandbox(container.name, sandbox)[0]),
    );
  }

  /**
   * Returns true if all init containers have completed, so that the containers may start (or the pod has failed
   * permanently).
   */
  #runInit(sandbox: SandboxStatus): boolean {
    for (const container of initContainersOf(this.#snapshot.pod)) {
      const status = this.#inSandbox(container.name, sandbox)[0];
      if (isSidecar(container)) {
        if (status?.state !== 'running') {
          this.#startWithBackOff(container, 'sidecar', sandbox);
          return false;
        }
        if (this.#killUnhealthy(container, status)) return false;
        if (container.startupProbe !== undefined && this.#probeResults(status).startup !== 'success') return false;
        continue;
      }
      if (status?.state === 'running') return false;
      if (status?.state === 'exited' && status.exitCode === 0) continue;
      if (failedForGood(this.#snapshot.pod, container, status)) return true;
      this.#startWithBackOff(container, 'init', sandbox);
      return false;
    }
    return true;
  }

  #keepSidecars(sandbox: SandboxStatus): void {
    for (const container of initContainersOf(this.#snapshot.pod).filter(isSidecar)) {
      const status = this.#inSandbox(container.name, sandbox)[0];
      if (status?.state === 'running') this.#killUnhealthy(container, status);
      else this.#startWithBackOff(container, 'sidecar', sandbox);
    }
  }

  /** Returns false if the pod has finished: no container runs, is due to start, or waits for a restart. */
  #runContainers(sandbox: SandboxStatus): boolean {
    let alive = false;
    for (const container of containersOf(this.#snapshot.pod)) {
      const status = attemptsOf(this.#containers, container.name)[0];
      if (status?.state === 'running') {
        alive = true;
        const hash = status.annotations[ANNOTATIONS.containerHash];
        if (hash !== undefined && hash !== containerHash(container)) {
          this.#actions.push(
            kill(
              status,
              graceOf(this.#snapshot.pod),
              `Container ${container.name} definition changed, will be restarted`,
            ),
          );
        } else {
          this.#killUnhealthy(container, status);
        }
      } else if (shouldStart(this.#snapshot.pod, container, status)) {
        alive = true;
        this.#startWithBackOff(container, 'app', sandbox);
      }
    }
    if (!alive) this.#actions.length = 0;
    return alive;
  }

  #probeResults(status: ContainerStatus): ProbeResults {
    return this.#snapshot.probeResults.get(status.id) ?? {};
  }

  #killUnhealthy(container: Container, status: ContainerStatus): boolean {
    const results = this.#probeResults(status);
    const probe = results.startup === 'failure' ? 'startup' : results.liveness === 'failure' ? 'liveness' : undefined;
    if (probe === undefined) return false;
    const spec = probe === 'startup' ? container.startupProbe : container.livenessProbe;
    const grace = Number(spec?.terminationGracePeriodSeconds ?? graceOf(this.#snapshot.pod));
    this.#actions.push(kill(status, grace, `Container ${container.name} failed ${probe} probe, will be restarted`));
    return true;
  }

  #startWithBackOff(container: Container, kind: ContainerKind, sandbox: SandboxStatus): void {
    const last = attemptsOf(this.#snapshot.containers, container.name)[0];
    const finishedAtMs = last?.state === 'exited' ? last.finishedAtMs : undefined;
    const entry: BackOffEntry | undefined = this.#snapshot.backOff.get(container.name);
    const until =
      finishedAtMs === undefined
        ? undefined
        : backOffUntil(entry, finishedAtMs, this.#nowMs, restartLimits(this.#snapshot.pod));
    if (until !== undefined && entry !== undefined) {
      const { metadata } = this.#snapshot.pod;
      this.#waiting.set(container.name, {
        reason: 'CrashLoopBackOff',
        message: `back-off ${goSeconds(entry.delayMs)} restarting failed container=${container.name} pod=${metadata?.name}_${metadata?.namespace}(${metadata?.uid})`,
      });
      this.#wakeAtMs = Math.min(this.#wakeAtMs ?? until, until);
      return;
    }
    this.#start(container.name, kind, sandbox, finishedAtMs);
  }

  #start(name: string, kind: ContainerKind, sandbox: SandboxStatus, lastFinishedAtMs: number | undefined): void {
    const last = attemptsOf(this.#snapshot.containers, name)[0];
    const known = this.#snapshot.restartCounts.get(name);
    this.#actions.push({
      type: 'startContainer',
      name,
      kind,
      sandboxId: sandbox.id,
      attempt: last === undefined ? (known ?? -1) + 1 : last.attempt + 1,
      lastFinishedAtMs,
    });
  }
}

/** Whether an init container (not a sidecar) failed and will not be restarted, which fails the pod. */
function failedForGood(pod: Pod, container: Container, status: ContainerStatus | undefined): boolean {
  if (isSidecar(container) || status?.state !== 'exited' || status.exitCode === 0) return false;
  return !restartsAfter(pod, container, status.exitCode);
}

/** Whether the sandbox can be used: it has the required kind of network and has not lost its address. */
function usable(sandbox: SandboxStatus, pod: Pod): boolean {
  const hostNetwork = pod.spec?.hostNetwork === true;
  return sandbox.hostNetwork === hostNetwork && (hostNetwork || sandbox.ips.length > 0);
}
