import type { Container, EphemeralContainer, Pod } from 'kubernetes-types/core/v1';
import type { PodSource } from '../../../api/podspec/host-root-image.ts';
import type { Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import { qosClassOf } from '../../../core/cgroup/resources.ts';
import { EVICTED } from '../../../core/eviction/messages.ts';
import type { BackOffEntry } from '../../../core/podplan/back-off.ts';
import { graceOf, type PodAction, type PodPlan, planPod } from '../../../core/podplan/plan.ts';
import type { ContainerStatus } from '../../../core/podplan/port.ts';
import {
  containersOf,
  initContainersOf,
  type PodSnapshot,
  readySandboxes,
  type WaitingReason,
} from '../../../core/podplan/snapshot.ts';
import { type PodStatus, podStatus } from '../../../core/podplan/status.ts';
import { downwardFilesChange } from '../volumes/sources.ts';
import { StartError } from './image-puller.ts';
import { PodExecutor } from './pod-executor.ts';
import { PodResize } from './resize.ts';
import type { PodServices } from './services.ts';
import { terminationMessage } from './termination-message.ts';

export interface Termination {
  readonly startedAtMs: number;
  readonly graceSeconds: number;
}

const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;

/**
 * Makes one pod true: looks, plans, carries out, and looks again whenever something may have changed. Long work (pulls,
 * starts, stops) runs beside the loop, so that a deletion or a shorter grace period is never kept waiting.
 */
export class PodWorker {
  readonly uid: string;
  private currentPod: Pod;
  private readonly services: PodServices;
  private readonly executor: PodExecutor;
  private readonly resize: PodResize;
  private resizing = false;
  private readonly startedAtMs: number;
  private readonly startFailures = new Map<string, WaitingReason>();
  private readonly backOff = new Map<string, BackOffEntry>();
  private readonly retries = new Map<string, { attempts: number; atMs: number }>();
  private readonly messages = new Map<string, string>();
  private readonly restartCounts = new Map<string, number>();
  private readonly assumedReady = new Set<string>();
  private announced = new Set<string>();
  private lastStatus: PodStatus;
  private termination: Termination | undefined;
  private failure: { readonly reason: string; readonly message: string } | undefined;
  private blocked: WaitingReason | undefined;
  private timer: Timer | undefined;
  private renewal: Timer | undefined;
  private starting = false;
  private abandon = new AbortController();
  private dirty = false;
  private looping = false;
  private stopped = false;
  private refreshVolumes = false;
  private released = false;
  private refused = false;
  private onFinished: (() => void) | undefined;
  /** Everything has ended and what the pod held is given back. */
  finished = false;

  constructor(pod: Pod, services: PodServices, source: PodSource) {
    this.uid = pod.metadata?.uid ?? '';
    this.currentPod = pod;
    this.services = services;
    this.startedAtMs = services.clock.nowMs();
    this.lastStatus = (pod.status ?? {}) as PodStatus;
    this.executor = new PodExecutor(services, source, () => this.wake());
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
      this.restartCounts.set(status.name, status.restartCount);
      if (status.ready) this.assumedReady.add(status.containerID.replace(/^.*:\/\//, ''));
    }
    if (isOver(pod)) this.terminate(0);
  }

  get pod(): Pod {
    return this.currentPod;
  }

  /** The pod with the resources that it has, which may not be those that it asks for. */
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

  /** It was refused at admission and never held anything of the node. */
  get rejected(): boolean {
    return this.refused;
  }

  update(pod: Pod): void {
    const before = this.currentPod;
    this.currentPod = pod;
    if (downwardFilesChange(before, pod)) this.refreshVolumes = true;
    this.wake();
  }

  /** Ends a pod that was not admitted, before it began. */
  reject(failure: { readonly reason: string; readonly message: string }): void {
    this.refused = true;
    this.terminate(0, failure);
  }

  /** Keeps the pod Pending: nothing of it is started. */
  block(why: WaitingReason): void {
    this.blocked = why;
    for (const { name } of [...initContainersOf(this.currentPod), ...containersOf(this.currentPod)])
      this.startFailures.set(name, { reason: 'Blocked', message: why.message });
  }

  /** The content of a config map or secret changed, or a token is due. */
  configChanged(): void {
    this.refreshVolumes = true;
    this.retries.clear();
    this.wake();
  }

  /** Containers that wait for their back-off are started at once, and the next failure counts as the first. */
  forgetBackOff(): void {
    this.backOff.clear();
    this.wake();
  }

  /** It was ended for what it uses of the node. */
  get evicted(): boolean {
    return this.failure?.reason === EVICTED && !this.refused;
  }

  /** Ends a pod for what it uses of the node. A pod that is ending already loses what is left of its grace period. */
  evict(graceSeconds: number, message: string): void {
    this.services.events.pod(this.currentPod, 'Warning', EVICTED, message);
    this.services.log.warn('pod evicted', { pod: this.name, reason: message.trim() });
    this.terminate(graceSeconds, { reason: EVICTED, message });
  }

  /** Ends the pod. A later call can only shorten what is left. */
  terminate(graceSeconds: number, failure?: { readonly reason: string; readonly message: string }): void {
    const nowMs = this.services.clock.nowMs();
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

  /** Resolves when the pod has ended. */
  ended(): Promise<void> {
    if (this.finished) return Promise.resolve();
    return new Promise((resolve) => {
      const before = this.onFinished;
      this.onFinished = () => {
        before?.();
        resolve();
      };
    });
  }

  wake(): void {
    this.dirty = true;
    if (!this.looping && !this.stopped) void this.loop();
  }

  /** Lets go of the pod and leaves its containers running. */
  stop(): void {
    this.stopped = true;
    this.abandon.abort();
    this.timer?.cancel();
    this.renewal?.cancel();
    this.services.prober.remove(this.uid);
  }

  private async loop(): Promise<void> {
    this.looping = true;
    while (this.dirty && !this.stopped) {
      this.dirty = false;
      try {
        await this.sync();
      } catch (error) {
        this.services.log.error('pod not synced', { pod: this.name, error: messageOf(error) });
        this.wakeAt(this.services.clock.nowMs() + this.retryDelay('sync'));
      }
    }
    this.looping = false;
  }

  private get name(): string {
    return `${this.currentPod.metadata?.namespace}/${this.currentPod.metadata?.name}`;
  }

  private async sync(): Promise<void> {
    const { services } = this;
    if (services.view.failure !== undefined) return;
    const snapshot = await this.snapshot();
    const nowMs = services.clock.nowMs();
    const plan = planPod(snapshot, nowMs);
    const over = plan.finished && !this.starting;
    this.probe(snapshot);
    this.report(snapshot, { ...plan, finished: over });
    this.announceBackOff(plan);
    if (plan.wakeAtMs !== undefined) this.wakeAt(plan.wakeAtMs);
    if (over) {
      await this.release();
      return;
    }
    if (this.refreshVolumes && !this.starting && this.termination === undefined) await this.updateVolumes();
    this.execute(plan, snapshot);
    this.advanceResize(snapshot);
  }

  private advanceResize(snapshot: PodSnapshot): void {
    const retry = this.retries.get('resize');
    const idle = !this.starting && !this.resizing && this.termination === undefined;
    const due = this.resize.state !== undefined || this.resize.pending(this.currentPod).length > 0;
    if (!idle || !due) return;
    if (retry !== undefined && retry.atMs > this.services.clock.nowMs()) {
      this.wakeAt(retry.atMs);
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
        () => this.retries.delete('resize'),
        (error: unknown) => {
          this.services.log.warn('pod not resized', { pod: this.name, error: messageOf(error) });
          this.retryAfter('resize');
        },
      )
      .finally(() => {
        this.resizing = false;
        const now = this.resize.state;
        if (now?.reason !== before?.reason || now === undefined || now.reason === 'Error') this.wake();
      });
  }

  private async snapshot(): Promise<PodSnapshot> {
    const view = this.services.view.get(this.uid);
    const containers: ContainerStatus[] = [];
    for (const status of view.containers) {
      containers.push(status.state === 'exited' ? { ...status, message: await this.messageOf(status) } : status);
    }
    return {
      pod: this.allottedPod,
      sandboxes: view.sandboxes,
      containers,
      verdicts: this.services.prober.verdictsFor(containers.map((status) => status.id)),
      startFailures: this.startFailures,
      backOff: this.backOff,
      restartCounts: this.restartCounts,
      ...(this.termination === undefined ? {} : { termination: this.termination }),
      startedAtMs: Date.parse(this.lastStatus.startTime ?? '') || this.startedAtMs,
    };
  }

  private async messageOf(status: ContainerStatus): Promise<string> {
    const known = this.messages.get(status.id);
    if (known !== undefined) return known;
    const path = this.services.directories.terminationMessage(this.uid, status.name, status.attempt);
    const message = await terminationMessage(this.services.files, status, path);
    this.messages.set(status.id, message);
    return message;
  }

  private probe(snapshot: PodSnapshot): void {
    const { prober } = this.services;
    if (this.termination !== undefined) {
      // Readiness counts until the end; a container that is being stopped is not restarted for being unwell.
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
    // Probes that were only just begun have a say in what is reported.
    const verdicts = services.prober.verdictsFor(snapshot.containers.map((status) => status.id));
    this.lastStatus = podStatus({
      snapshot: { ...snapshot, verdicts },
      plan,
      previous: this.lastStatus,
      hostIps: services.hostIps,
      qosClass: qosClassOf(this.currentPod),
      ...services.runtimeFacts(),
      ...(this.failure === undefined ? {} : { failure: this.failure }),
      ...(this.blocked === undefined ? {} : { blocked: this.blocked }),
      rejected: this.refused,
      ...(this.resize.state === undefined ? {} : { resize: this.resize.state }),
      nowMs: services.clock.nowMs(),
    });
    services.statuses.set(this.uid, this.lastStatus);
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

  /** Gives back what the pod held. Container records stay for `logs --previous` until the pod object is gone. */
  private async release(): Promise<void> {
    if (this.released) return;
    const { services } = this;
    services.prober.remove(this.uid);
    await services.volumes.tearDown(this.uid);
    await services.cgroups.removePod(this.uid);
    await this.freeDisk();
    this.released = true;
    this.finished = true;
    services.tokens.forget(this.uid);
    services.config.release(this.uid);
    services.puller.forget(this.uid);
    services.statuses.finish(this.uid);
    services.log.v(2, 'pod ended', { pod: this.name });
    this.onFinished?.();
    services.onFinished(this.uid);
  }

  /**
   * A pod that is over keeps nothing but its containers' last words, and an evicted one not even those: its object may
   * stay for ever. What the host only stops is started again and keeps its volumes.
   */
  private async freeDisk(): Promise<void> {
    const { directories, runtime, view } = this.services;
    const stopped = this.termination !== undefined && this.failure === undefined && !isOver(this.currentPod);
    if (stopped && this.currentPod.metadata?.deletionTimestamp === undefined) return;
    await directories.removeVolumes(this.uid);
    if (!this.evicted) return;
    const { containers, sandboxes } = view.get(this.uid);
    for (const { id } of containers) await runtime.removeContainer(id);
    for (const { id } of sandboxes) await runtime.removePodSandbox(id);
    await directories.removePod(this.uid);
    await directories.removeLogs(this.currentPod);
    await view.refresh();
  }

  private async updateVolumes(): Promise<void> {
    const ready = readySandboxes(this.services.view.get(this.uid).sandboxes)[0];
    if (ready === undefined) return;
    this.refreshVolumes = false;
    try {
      await this.services.volumes.setUp(this.currentPod, this.services.addresses(this.currentPod, ready));
      this.retries.delete('volumes');
    } catch (error) {
      this.refreshVolumes = true;
      this.services.events.pod(this.currentPod, 'Warning', 'FailedMount', messageOf(error));
      this.services.log.warn('volumes not updated', { pod: this.name, error: messageOf(error) });
      this.wakeAt(this.services.clock.nowMs() + this.retryDelay('volumes'));
    }
    const renewal = this.services.tokens.renewalAtMs(this.uid);
    if (renewal !== undefined) this.renewAt(renewal);
  }

  private renewAt(atMs: number): void {
    const delay = Math.max(1_000, Math.min(atMs - this.services.clock.nowMs(), 3600_000));
    this.renewal?.cancel();
    this.renewal = this.services.clock.setTimer(delay, () => {
      this.refreshVolumes = true;
      this.wake();
    });
  }

  private execute(plan: PodPlan, snapshot: PodSnapshot): void {
    if (this.blocked !== undefined) return;
    const nowMs = this.services.clock.nowMs();
    const starts: PodAction[] = [];
    for (const action of plan.actions) {
      if (action.type === 'killContainer') {
        const container = this.containerNamed(action.name);
        this.executor.kill(this.currentPod, container, action, this.termination !== undefined);
      } else if (action.type === 'stopSandbox') {
        if (!this.starting) this.executor.stopSandbox(this.currentPod, action.sandboxId);
      } else {
        const retry = this.retries.get(action.type === 'createSandbox' ? 'sandbox' : action.name);
        if (retry !== undefined && retry.atMs > nowMs) this.wakeAt(retry.atMs);
        else starts.push(action);
      }
    }
    if (starts.length > 0 && !this.starting && this.termination === undefined) {
      this.starting = true;
      void this.start(starts, snapshot).finally(() => {
        this.starting = false;
        this.wake();
      });
    }
  }

  private async start(actions: readonly PodAction[], snapshot: PodSnapshot): Promise<void> {
    const { signal } = this.abandon;
    for (const action of actions) {
      if (signal.aborted || this.stopped) return;
      if (action.type === 'createSandbox') await this.createSandbox(action);
      else if (action.type === 'startContainer') await this.startContainer(action, snapshot, signal);
    }
    await this.services.view.refresh();
  }

  private async createSandbox(action: Extract<PodAction, { type: 'createSandbox' }>): Promise<void> {
    try {
      await this.executor.createSandbox(this.allottedPod, action);
      this.retries.delete('sandbox');
      const renewal = this.services.tokens.renewalAtMs(this.uid);
      if (renewal !== undefined) this.renewAt(renewal);
    } catch (error) {
      this.retryAfter('sandbox');
      this.services.log.warn('pod sandbox not created', { pod: this.name, error: messageOf(error) });
    }
  }

  private async startContainer(
    action: Extract<PodAction, { type: 'startContainer' }>,
    snapshot: PodSnapshot,
    signal: AbortSignal,
  ): Promise<void> {
    const container = this.containerNamed(action.name);
    const sandbox = snapshot.sandboxes.find((each) => each.id === action.sandboxId);
    if (container === undefined || sandbox === undefined) return;
    try {
      await this.executor.startContainer(this.allottedPod, container, sandbox, action, this.backOff, signal);
      this.startFailures.delete(action.name);
      this.retries.delete(action.name);
      this.restartCounts.delete(action.name);
    } catch (error) {
      if (signal.aborted) return;
      const failure =
        error instanceof StartError
          ? error
          : new StartError({ reason: 'RunContainerError', message: messageOf(error) });
      this.startFailures.set(action.name, failure.waiting);
      this.services.events.pod(
        this.currentPod,
        'Warning',
        'Failed',
        `Error: ${failure.waiting.reason === 'ErrImagePull' || failure.waiting.reason === 'ImagePullBackOff' ? failure.waiting.reason : failure.waiting.message}`,
        action.name,
      );
      this.services.log.v(2, 'container not started', {
        pod: this.name,
        container: action.name,
        reason: failure.waiting.reason,
        error: failure.waiting.message,
      });
      if (failure.retryAtMs === undefined) this.retryAfter(action.name);
      else this.retries.set(action.name, { attempts: 0, atMs: failure.retryAtMs });
    }
  }

  private containerNamed(name: string): Container | EphemeralContainer | undefined {
    const spec = this.allottedPod.spec;
    return [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])].find(
      (each) => each.name === name,
    );
  }

  private retryAfter(key: string): void {
    const delay = this.retryDelay(key);
    const attempts = (this.retries.get(key)?.attempts ?? 0) + 1;
    this.retries.set(key, { attempts, atMs: this.services.clock.nowMs() + delay });
  }

  private retryDelay(key: string): number {
    return Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (this.retries.get(key)?.attempts ?? 0));
  }

  private wakeAt(atMs: number): void {
    this.timer?.cancel();
    this.timer = this.services.clock.setTimer(Math.max(0, atMs - this.services.clock.nowMs()), () => this.wake());
  }
}

const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';
