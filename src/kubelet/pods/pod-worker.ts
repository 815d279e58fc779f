import type { Pod, PodStatus } from '../../api/generated/core/v1.ts';
import type { PodSource } from '../../api/podspec/host-root-image.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { MAX_TIMER_MS, type Timer } from '../../base/time/clock.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import { qosClassOf } from '../core/cgroups/resources.ts';
import { EVICTED } from '../core/eviction/messages.ts';
import { isFinal, podAgeMs } from '../core/pod-plan/phase.ts';
import { graceOf, type PodPlan, planPod } from '../core/pod-plan/plan.ts';
import {
  containersOf,
  initContainersOf,
  type PodSnapshot,
  readySandboxes,
  startedContainers,
  type WaitingReason,
} from '../core/pod-plan/snapshot.ts';
import { podStatus, withPhaseOf } from '../core/pod-plan/status.ts';
import { downwardFilesChange } from '../volumes/types/payload.ts';
import { TerminationMessages } from './containers/termination-message.ts';
import { PodExecutor, type PodExecutorServices } from './pod-executor.ts';
import { type Kept, keptAfter, type PodReleaseServices, releasePod } from './pod-release.ts';
import { PodStarts, type StartAction, stepOf } from './pod-starts.ts';
import { PodResize, type PodResizeServices } from './resize.ts';
import { Retries } from './retries.ts';
import type { PodServices } from './services.ts';
import { VolumeRefresh, type VolumeRefreshServices } from './volume-refresh.ts';

export type PodWorkerServices = PodExecutorServices &
  PodReleaseServices &
  PodResizeServices &
  VolumeRefreshServices &
  Pick<PodServices, 'config' | 'puller' | 'statuses'>;

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;

/**
 * Reconciles one pod: observes, plans and executes, and repeats after every relevant change. Pulls, starts and stops
 * run outside the loop, so a deletion or a shorter grace period takes effect immediately.
 */
export class PodWorker {
  readonly uid: Uid;
  private currentPod: Pod;
  private readonly services: PodWorkerServices;
  private readonly onReleased: (uid: Uid) => void;
  private readonly executor: PodExecutor;
  private readonly resize: PodResize;
  private resizing = false;
  /** Monotonic start of the pod, which its deadline counts from. */
  private readonly startedAtMs: number;
  private readonly starts: PodStarts;
  private readonly started: readonly ContainerStatus[];
  private readonly volumes: VolumeRefresh;
  private readonly retries = new Retries({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
  private readonly messages: TerminationMessages;
  private readonly assumedReady = new Set<string>();
  private announced = new Set<string>();
  private lastStatus: PodStatus;
  private termination: PodSnapshot['termination'];
  private failure: { readonly reason: string; readonly message: string } | undefined;
  private blocked: WaitingReason | undefined;
  private timer: Timer | undefined;
  private starting = false;
  private abandon = new AbortController();
  private dirty = false;
  private looping = false;
  private stopped = false;
  private refused = false;
  private concluded = false;
  private hostStops = false;
  private readonly end = Promise.withResolvers<void>();
  /** Whether no source contains the pod any longer, so its volumes are released when it ends. */
  removed = false;
  /** Whether everything has ended and the pod's resources are released. */
  finished = false;
  /** Whether no container runs or will run again, although volumes may still be in use. */
  containersEnded = false;
  /** Status that was handed to the status manager last. */
  private published: PodStatus;

  /** `onReleased`: called with the UID when the pod has ended and its resources are released. */
  constructor(pod: Pod, services: PodWorkerServices, source: PodSource, onReleased: (uid: Uid) => void) {
    this.uid = toUid(pod.metadata?.uid);
    this.currentPod = pod;
    this.services = services;
    this.onReleased = onReleased;
    this.startedAtMs = services.clock.monotonicMs() - podAgeMs(pod, services.clock.nowMs());
    this.lastStatus = (pod.status ?? {}) as PodStatus;
    this.published = this.lastStatus;
    this.executor = new PodExecutor(services, source, {
      done: () => this.wake(),
      fail: (reason, message) => this.fail(reason, message),
    });
    this.messages = new TerminationMessages(services.files, services.directories, this.uid);
    this.volumes = new VolumeRefresh(services, this.uid, () => this.wake());
    this.starts = new PodStarts({
      services,
      executor: this.executor,
      retries: this.retries,
      pod: () => this.currentPod,
      allottedPod: () => this.allottedPod,
      onSandbox: () => this.volumes.awaitRenewal(),
    });
    this.resize = new PodResize(pod, {
      services,
      restart: (container, status) =>
        this.executor.kill(
          this.allottedPod,
          container,
          {
            type: 'killContainer',
            containerId: status.id,
            name: status.name,
            graceSeconds: graceOf(this.currentPod),
            message: `Container ${status.name} resize requires restart`,
          },
          false,
        ),
    });
    for (const status of [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])]) {
      if (status.containerID === undefined || status.containerID === '') continue;
      this.starts.restartCounts.set(status.name, status.restartCount);
      if (status.ready) this.assumedReady.add(status.containerID.replace(/^.*:\/\//, ''));
    }
    this.started = startedContainers(pod.status);
    if (isFinal(pod.status?.phase)) this.conclude();
  }

  get pod(): Pod {
    return this.currentPod;
  }

  /** The pod with its allocated resources, which may differ from the requested ones. */
  get allottedPod(): Pod {
    return this.resize.allottedPod(this.currentPod);
  }

  get resizeDeferred(): boolean {
    return this.resize.state !== undefined;
  }

  get status(): PodStatus {
    return this.lastStatus;
  }

  get terminating(): boolean {
    return this.termination !== undefined;
  }

  /** Whether admission refused the pod, so it never held node resources. */
  get rejected(): boolean {
    return this.refused;
  }

  update(pod: Pod): void {
    const before = this.currentPod;
    this.currentPod = pod;
    this.starts.updated(before, pod);
    if (downwardFilesChange(before, pod)) this.volumes.due = true;
    this.takeFinalPhase(pod.status);
    this.wake();
  }

  /** Ends a pod that was not admitted and has not started. */
  reject(failure: { readonly reason: string; readonly message: string }): void {
    this.refused = true;
    this.terminate(0, failure);
  }

  /** Keeps the pod Pending and starts no part of it. */
  block(why: WaitingReason): void {
    this.blocked = why;
    for (const { name } of [...initContainersOf(this.currentPod), ...containersOf(this.currentPod)])
      this.starts.failures.set(name, { reason: 'Blocked', message: why.message });
  }

  /** Called when a config map or secret changed, or when a token is due for renewal. */
  configChanged(): void {
    this.volumes.due = true;
    this.retries.clear();
    this.wake();
  }

  /** Starts waiting containers immediately and resets the back-off. */
  forgetBackOff(): void {
    this.starts.backOff.clear();
    this.wake();
  }

  /** Whether the pod was evicted for its resource usage. */
  get evicted(): boolean {
    return this.failure?.reason === EVICTED && !this.refused;
  }

  /** Ends a pod for its resource usage. A pod that is already terminating loses the rest of its grace period. */
  evict(graceSeconds: number, message: string): void {
    this.services.events.pod(this.currentPod, 'Warning', EVICTED, message);
    this.services.log.warn('pod evicted', { pod: this.name, reason: message.trim() });
    this.terminate(graceSeconds, { reason: EVICTED, message });
  }

  /** Fails a pod that lost a required resource of the node. */
  fail(reason: string, message: string): void {
    if (this.finished || this.failure !== undefined) return;
    this.services.events.pod(this.currentPod, 'Warning', reason, message);
    this.services.log.warn('pod failed', { pod: this.name, reason, error: message });
    this.terminate(Number(this.currentPod.spec?.terminationGracePeriodSeconds ?? 30), { reason, message });
  }

  /** Adopts a final phase and its reason from the API. */
  private takeFinalPhase({ phase, reason, message }: PodStatus = {}): void {
    if (phase === undefined || !isFinal(phase)) return;
    if (!isFinal(this.lastStatus.phase)) {
      this.lastStatus = {
        ...this.lastStatus,
        phase,
        ...(reason === undefined ? {} : { reason }),
        ...(message === undefined ? {} : { message }),
      };
    }
    this.conclude();
  }

  /** Ends a pod whose phase is final, set by the API or by the kubelet. The phase does not change any more. */
  private conclude(): void {
    this.concluded = true;
    if (this.termination === undefined) this.terminate(graceOf(this.currentPod));
  }

  /** Terminates the pod. Later calls can only shorten the remaining grace period. */
  terminate(graceSeconds: number, failure?: { readonly reason: string; readonly message: string }): void {
    const nowMs = this.services.clock.monotonicMs();
    this.failure ??= failure;
    if (this.termination === undefined) {
      this.termination = { startedAtMs: nowMs, graceSeconds };
      this.abandon.abort();
    } else {
      const left = this.termination.startedAtMs + this.termination.graceSeconds * 1000 - nowMs;
      if (graceSeconds * 1000 >= left) return;
      this.termination = { startedAtMs: nowMs, graceSeconds };
    }
    this.wake();
  }

  /** Terminates the pod because the host stops. Volumes that cannot be released are kept for the next start. */
  stopWithHost(graceSeconds: number): void {
    this.hostStops = true;
    this.terminate(graceSeconds);
    this.wake();
  }

  ended(): Promise<void> {
    return this.end.promise;
  }

  wake(): void {
    this.dirty = true;
    if (!this.looping && !this.stopped) void this.loop();
  }

  /** Stops this worker and leaves the containers running. */
  stop(): void {
    this.stopped = true;
    this.abandon.abort();
    this.timer?.cancel();
    this.volumes.stop();
    this.services.prober.remove(this.uid);
  }

  private async loop(): Promise<void> {
    this.looping = true;
    while (this.dirty && !this.stopped) {
      this.dirty = false;
      try {
        await this.sync();
        this.retries.succeeded('sync');
      } catch (error) {
        this.services.log.error('pod not synced', { pod: this.name, error: messageOf(error) });
        this.wakeIn(this.retries.delayMs('sync'));
        this.retries.failed('sync', this.services.clock.monotonicMs());
      }
    }
    this.looping = false;
  }

  private get name(): string {
    return `${this.currentPod.metadata?.namespace}/${this.currentPod.metadata?.name}`;
  }

  private async sync(): Promise<void> {
    if (this.services.view.failure !== undefined) return;
    const snapshot = await this.snapshot();
    const nowMs = this.services.clock.nowMs();
    const plan = planPod(snapshot, nowMs);
    const over = plan.finished && !this.starting;
    const shown = this.executor.withoutStarting(snapshot);
    this.probe(shown);
    this.report(shown, { ...plan, finished: over });
    this.announceBackOff(plan);
    if (plan.wakeAtMs !== undefined) this.wakeIn(plan.wakeAtMs - nowMs);
    if (over) return this.release();
    if (this.volumes.due && !this.starting && this.termination === undefined) await this.updateVolumes();
    this.execute(plan, snapshot);
    this.advanceResize(snapshot);
  }

  private advanceResize(snapshot: PodSnapshot): void {
    const retryAtMs = this.retries.dueAtMs('resize');
    const idle = !this.starting && !this.resizing && this.termination === undefined;
    const due = this.resize.state !== undefined || this.resize.pending(this.currentPod).length > 0;
    if (!idle || !due) return;
    const leftMs = (retryAtMs ?? 0) - this.services.clock.monotonicMs();
    if (retryAtMs !== undefined && leftMs > 0) {
      this.wakeIn(leftMs);
      return;
    }
    const before = this.resize.state;
    this.resizing = true;
    void this.resize
      .advance(
        this.currentPod,
        snapshot.containers.filter((status) => status.state === 'running'),
      )
      .then(
        () => this.retries.succeeded('resize'),
        (error: unknown) => {
          this.services.log.warn('pod not resized', { pod: this.name, error: messageOf(error) });
          this.retries.failed('resize', this.services.clock.monotonicMs());
        },
      )
      .finally(() => {
        this.resizing = false;
        const now = this.resize.state;
        if (now?.reason !== before?.reason || now === undefined || now.reason === 'Error') this.wake();
      });
  }

  private async snapshot(): Promise<PodSnapshot> {
    const { termination } = this;
    const view = this.services.view.get(this.uid);
    const containers = await this.messages.addTo(view.containers);
    return {
      pod: this.allottedPod,
      sandboxes: view.sandboxes,
      containers,
      probeResults: this.services.prober.resultsFor(containers.map((status) => status.id)),
      started: this.started,
      startFailures: this.starts.failures,
      backOff: this.starts.backOff,
      restartCounts: this.starts.restartCounts,
      ...(termination === undefined
        ? {}
        : { termination: { ...termination, startedAtMs: this.wallMs(termination.startedAtMs) } }),
      startedAtMs: this.wallMs(this.startedAtMs),
    };
  }

  /** Converts to wall-clock time, which the planner uses. */
  private wallMs(monotonicMs: number): number {
    const { clock } = this.services;
    return clock.nowMs() - (clock.monotonicMs() - monotonicMs);
  }

  private probe(snapshot: PodSnapshot): void {
    const { prober } = this.services;
    if (this.termination !== undefined) {
      // Readiness probes run until the end. Failed liveness probes do not restart a container that is being stopped.
      if (snapshot.containers.every((status) => status.state !== 'running')) prober.remove(this.uid);
      return;
    }
    const ready = readySandboxes(snapshot.sandboxes)[0];
    if (ready === undefined) return;
    const ip = this.services.addresses(this.currentPod, ready).podIps[0] ?? '127.0.0.1';
    prober.sync(
      this.currentPod,
      snapshot.containers.filter((status) => status.state === 'running' && status.sandboxId === ready.id),
      ip,
      this.assumedReady,
    );
  }

  private report(snapshot: PodSnapshot, plan: PodPlan): void {
    const { services } = this;
    const resize = this.resize.stateOf(snapshot.pod);
    // Read the results again, because `probe` may have added probes, whose first results belong in the status.
    const probeResults = services.prober.resultsFor(snapshot.containers.map((status) => status.id));
    this.lastStatus = podStatus({
      snapshot: { ...snapshot, probeResults },
      plan,
      previous: this.lastStatus,
      hostIps: services.settings.nodeIps,
      qosClass: qosClassOf(this.currentPod),
      ...services.runtimeFacts(),
      ...(this.failure === undefined ? {} : { failure: this.failure }),
      ...(this.blocked === undefined ? {} : { blocked: this.blocked }),
      rejected: this.refused,
      ...(resize === undefined ? {} : { resize }),
      nowMs: services.clock.nowMs(),
    });
    this.publish(this.starting || snapshot.containers.some(({ state }) => state === 'running'));
    if (isFinal(this.lastStatus.phase) && !plan.finished && !plan.deadlineExceeded) this.conclude();
  }

  /**
   * A final phase is published only when all containers have ended, because controllers then replace the pod and the
   * scheduler gives its resources to the next one. Source: pkg/kubelet/status mergePodStatus.
   */
  private publish(containersRun: boolean): void {
    const { services, uid } = this;
    let status = this.lastStatus;
    if (isFinal(status.phase)) {
      if (!containersRun) this.endContainers();
      else if (!isFinal(this.currentPod.status?.phase)) status = withPhaseOf(this.published, status);
    }
    this.published = status;
    services.statuses.set(uid, status);
  }

  /**
   * Releases CPUs, memory and devices early, because another pod may need them before this pod's volumes have been
   * released.
   */
  private endContainers(): void {
    if (this.containersEnded) return;
    this.containersEnded = true;
    this.services.containers.release(this.uid);
    this.services.devices?.releaseDevices(this.uid);
  }

  private announceBackOff(plan: PodPlan): void {
    for (const name of plan.waiting.keys()) {
      if (this.announced.has(name)) continue;
      const { metadata } = this.currentPod;
      this.services.events.pod(
        this.currentPod,
        'Warning',
        'BackOff',
        `Back-off restarting failed container ${name} in pod ${metadata?.name}_${metadata?.namespace}(${metadata?.uid})`,
        name,
      );
    }
    this.announced = new Set(plan.waiting.keys());
  }

  private async release(): Promise<void> {
    if (this.finished) return;
    const { services } = this;
    await releasePod(services, this.currentPod, this.kept, () => this.hostStops);
    this.finished = true;
    services.tokens.forget(this.uid);
    services.config.release(this.uid);
    services.puller.forget(this.uid);
    services.statuses.finish(this.uid);
    services.log.v(2, 'pod ended', { pod: this.name });
    this.end.resolve();
    this.onReleased(this.uid);
  }

  private readonly kept = (): Kept => {
    const stopped = this.termination !== undefined && this.failure === undefined && !this.concluded && !this.removed;
    return keptAfter(this.currentPod, stopped, this.evicted);
  };

  private async updateVolumes(): Promise<void> {
    if (await this.volumes.run(this.currentPod)) return;
    this.wakeIn(this.retries.delayMs('volumes'));
  }

  private execute(plan: PodPlan, snapshot: PodSnapshot): void {
    if (this.blocked !== undefined) return;
    const nowMs = this.services.clock.monotonicMs();
    const starts: StartAction[] = [];
    for (const action of plan.actions) {
      if (action.type === 'killContainer') {
        const container = this.starts.containerNamed(action.name);
        this.executor.kill(this.currentPod, container, action, this.termination !== undefined);
      } else if (action.type === 'stopSandbox') {
        if (!this.starting) this.executor.stopSandbox(this.currentPod, action.sandboxId);
      } else {
        const retryAtMs = this.retries.dueAtMs(stepOf(action));
        if (retryAtMs !== undefined && retryAtMs > nowMs) this.wakeIn(retryAtMs - nowMs);
        else starts.push(action);
      }
    }
    if (starts.length > 0 && !this.starting && this.termination === undefined) {
      this.starting = true;
      void this.starts.run(starts, snapshot, this.abandon.signal).finally(() => {
        this.starting = false;
        this.wake();
      });
    }
  }

  private wakeIn(delayMs: number): void {
    this.timer?.cancel();
    this.timer = this.services.clock.setTimer(Math.max(0, Math.min(delayMs, MAX_TIMER_MS)), () => this.wake());
  }
}
