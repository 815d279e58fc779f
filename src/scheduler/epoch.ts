/**
 * Scheduling during one period of leadership: maintains the cluster state, takes pods from the queue one at a time, and
 * binds them asynchronously.
 */
import { setImmediate as yieldToLoop } from 'node:timers';
import { type PodInfo, podInfoOf } from '../api/podspec/scheduling/pod-info.ts';
import { messageOf } from '../base/errors.ts';
import type { Timer } from '../base/time/clock.ts';
import { Binding } from './binding.ts';
import { Cluster, type ClusterView, type ViewSupport } from './core/cluster.ts';
import { DEFAULT_ARGS } from './core/plugin-args.ts';
import { podGroupKey } from './core/pod-group.ts';
import { DEFAULT_PROFILE, DEFAULT_SCHEDULER_NAME, type Profile, profileOf } from './core/profile.ts';
import { SchedulingQueue } from './core/queue.ts';
import type { Decision } from './core/schedule.ts';
import { decidePlacement } from './cycle.ts';
import {
  discoverOptionalSources,
  discoverPodGroups,
  noOptionalSources,
  type OptionalSources,
  type Sources,
  viewSupport,
} from './data-sources.ts';
import type { SchedulerDeps } from './deps.ts';
import { ClaimAllocator } from './devices/devices.ts';
import type { EpochState } from './epoch-state.ts';
import { Extenders } from './extenders.ts';
import { ClusterFeed } from './feed.ts';
import { placeGroup } from './gang/gang.ts';
import { GroupMembers } from './gang/group-members.ts';
import type { BindingPlugin } from './plugins.ts';
import { hasGates, isPlaced, isTerminal } from './relevant-changes.ts';
import { VolumeBinder } from './volumes.ts';
import { createWrites, type SchedulingWrites } from './writes.ts';

/** Maximum duration of consecutive decisions before the event loop can run other work. */
const SLICE_MS = 10;
const DISCOVERY_RETRY_MS = 2_000;
/** Minimum interval between attempts to discover pod groups, whose definition may be created later. */
const POD_GROUPS_RETRY_MS = 5_000;

export function startEpoch(deps: SchedulerDeps, sources: Sources): () => Promise<void> {
  const epoch = new Epoch(deps, sources);
  epoch.start();
  return () => epoch.stop();
}

class Epoch implements EpochState {
  readonly deps: SchedulerDeps;
  readonly sources: Sources;
  readonly cluster = new Cluster();
  readonly queue: SchedulingQueue;
  readonly members = new GroupMembers();
  readonly writes: SchedulingWrites;
  readonly extenders: Extenders | undefined;
  readonly plugins: BindingPlugin[] = [];
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #feed: ClusterFeed;
  readonly #binding: Binding;
  readonly #active = new Set<Promise<void>>();
  #more: OptionalSources = noOptionalSources;
  #support: ViewSupport;
  #podGroupsCheckedMs = Number.NEGATIVE_INFINITY;
  /**
   * Whether a decision is waiting for extenders or discovery. Meanwhile no other decision starts, because it would not
   * see the resources that the waiting decision will reserve.
   */
  #isDeciding = false;
  #isPumping = false;
  #stopped = false;
  #timer: Timer | undefined;
  #discoveryTimer: Timer | undefined;

  constructor(deps: SchedulerDeps, sources: Sources) {
    const { settings } = deps;
    this.deps = deps;
    this.sources = sources;
    this.queue = new SchedulingQueue({
      ...(settings?.initialBackoffMs === undefined ? {} : { initialBackoffMs: settings.initialBackoffMs }),
      ...(settings?.maxBackoffMs === undefined ? {} : { maxBackoffMs: settings.maxBackoffMs }),
    });
    const profiles = settings?.profiles ?? [DEFAULT_PROFILE];
    this.#profiles = new Map(profiles.map((profile) => [profile.schedulerName, profileOf(profile)]));
    this.extenders =
      deps.extenders === undefined || settings === undefined || settings.extenders.length === 0
        ? undefined
        : new Extenders(settings.extenders, deps.extenders, deps.log);
    this.writes = createWrites(deps.client, () => deps.clock.nowMs());
    this.#support = viewSupport(sources, this.#more);
    this.#feed = new ClusterFeed(this);
    this.#binding = new Binding(this);
  }

  get more(): OptionalSources {
    return this.#more;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  profileOf({ pod }: PodInfo): Profile | undefined {
    return this.#profiles.get(pod.spec?.schedulerName ?? DEFAULT_SCHEDULER_NAME);
  }

  view(): ClusterView {
    return this.cluster.view(this.#support);
  }

  nowMs(): number {
    return this.deps.clock.monotonicMs();
  }

  track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#active.delete(tracked));
    this.#active.add(tracked);
  }

  start(): void {
    this.#feed.start();
    this.#discover();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#discoveryTimer?.cancel();
    for (const plugin of this.plugins) plugin.stop();
    this.#feed.stop();
    await Promise.all(this.#active);
  }

  #discover(): void {
    // `stop` does not wait for the discovery, which may hang while the server is unreachable. After a stop, its result
    // is ignored.
    void discoverOptionalSources(this.deps).then(
      (more) => {
        if (this.#stopped) return;
        this.#more = more;
        this.#addPlugins(more);
        this.#feed.addOptional(more);
        this.#feed.addPodGroups(more);
      },
      (error: unknown) => {
        if (this.#stopped) return;
        this.deps.log.v(2, 'discovery failed; retrying', { error: messageOf(error) });
        this.#discoveryTimer = this.deps.clock.setTimer(DISCOVERY_RETRY_MS, () => this.#discover());
      },
    );
  }

  #addPlugins(more: OptionalSources): void {
    const { claims, volumes } = more;
    const argsOf = (pod: PodInfo) => this.profileOf(pod)?.args ?? DEFAULT_ARGS;
    const bindTimeoutSeconds = (pod: PodInfo): number => argsOf(pod).bindTimeoutSeconds;
    const binder =
      claims === undefined || volumes === undefined
        ? undefined
        : new VolumeBinder({ ...this.deps, bindTimeoutSeconds }, { pods: this.sources.pods, claims, volumes });
    if (binder !== undefined) this.plugins.push(binder);
    const { devices } = more;
    const changed = (): void => this.#feed.devicesChanged();
    const bindingTimeoutMs = (pod: PodInfo): number => argsOf(pod).bindingTimeoutMs;
    const allocator =
      devices === undefined
        ? undefined
        : new ClaimAllocator({ ...this.deps, bindingTimeoutMs }, { ...devices, pods: this.sources.pods }, changed);
    if (allocator !== undefined) this.plugins.push(allocator);
    const support = viewSupport(this.sources, more, (volume) => binder?.isReserved(volume) === true);
    this.#support = { ...support, devices: allocator };
  }

  released(pod: PodInfo): void {
    if (!this.#stopped) this.#feed.released(pod);
  }

  /** Starts decisions in a later turn of the event loop. Several calls before that start only one run. */
  pump(): void {
    if (this.#isPumping || this.#isDeciding || this.#stopped) return;
    this.#isPumping = true;
    yieldToLoop(() => {
      this.#isPumping = false;
      this.#run();
    });
  }

  #run(): void {
    if (this.#stopped || this.#isDeciding) return;
    const { clock } = this.deps;
    const startedMs = clock.monotonicMs();
    this.queue.flush(this.nowMs());
    while (!this.#binding.isFull) {
      const next = this.queue.pop(this.nowMs());
      if (next === undefined) break;
      const pending = this.#attempt(next);
      if (pending !== undefined) {
        this.#resumeAfter(pending);
        return;
      }
      if (clock.monotonicMs() - startedMs > SLICE_MS) break;
    }
    // At the limit of concurrent bindings, the end of a binding calls `pump` again.
    if (this.#binding.isFull) return;
    const dueMs = this.queue.nextDueInMs(this.nowMs());
    this.#timer?.cancel();
    this.#timer = undefined;
    if (dueMs === 0) this.pump();
    else if (dueMs !== undefined) this.#timer = clock.setTimer(dueMs, () => this.pump());
  }

  #resumeAfter(pending: Promise<void>): void {
    this.#isDeciding = true;
    const resumed = pending.finally(() => {
      this.#isDeciding = false;
      this.pump();
    });
    this.track(resumed);
  }

  #attempt(queued: PodInfo): Promise<void> | undefined {
    const pod = this.sources.pods.get(queued.key);
    const isPending = pod !== undefined && pod.metadata?.uid === queued.uid && !isPlaced(pod) && !isTerminal(pod);
    if (!isPending || pod.metadata?.deletionTimestamp !== undefined || hasGates(pod)) {
      this.queue.remove(queued.uid);
      return undefined;
    }
    const info = queued.pod === pod ? queued : podInfoOf(pod);
    const profile = this.profileOf(info);
    if (profile === undefined) {
      this.queue.remove(queued.uid);
      return undefined;
    }
    try {
      const group = podGroupKey(pod);
      if (group !== undefined) return this.#guarded(info, this.#attemptGroup(info, profile, group));
      const decision = decidePlacement(this, info, profile);
      if (decision instanceof Promise)
        return this.#guarded(
          info,
          decision.then((made) => this.#act(info, made)),
        );
      this.#act(info, decision);
    } catch (error) {
      this.#failed(info, error);
    }
    return undefined;
  }

  async #guarded(info: PodInfo, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#failed(info, error);
    }
  }

  /**
   * Handles an unexpected error, which must not stop the scheduling of other pods: logs it and retries the pod later.
   */
  #failed(info: PodInfo, error: unknown): void {
    this.deps.log.error('scheduling failed', { pod: info.key, error: messageOf(error) });
    this.queue.failed(info.uid, this.nowMs());
  }

  #act(info: PodInfo, decision: Decision): void {
    if (this.#stopped) return;
    // The pod may have been deleted or bound while the extenders were called.
    if (this.queue.get(info.uid) === undefined) return;
    const outcome = decision.kind === 'bind' ? this.#binding.reserve(info, decision.node) : decision;
    if (outcome !== undefined) this.#binding.handleSchedulingFailure(info, outcome);
    else if (decision.kind === 'bind') this.#binding.bind(info, decision.node);
  }

  /**
   * Tries to place the group of a pod. If the server does not serve pod groups, the label of the group has no effect.
   */
  async #attemptGroup(info: PodInfo, profile: Profile, key: string): Promise<void> {
    const groups = this.#more.podGroups ?? (await this.#detectPodGroups());
    if (this.#stopped) return;
    if (groups === undefined) this.#act(info, await decidePlacement(this, info, profile));
    else await placeGroup(this, this.#binding, key, info, groups.get(key));
  }

  async #detectPodGroups(): Promise<OptionalSources['podGroups']> {
    const nowMs = this.nowMs();
    if (nowMs - this.#podGroupsCheckedMs < POD_GROUPS_RETRY_MS) return undefined;
    this.#podGroupsCheckedMs = nowMs;
    const podGroups = await discoverPodGroups(this.deps);
    if (podGroups === undefined || this.#stopped) return undefined;
    this.#more = { ...this.#more, podGroups };
    this.#feed.addPodGroups({ podGroups });
    return podGroups;
  }
}
