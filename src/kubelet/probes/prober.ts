import type { Container, Pod, Probe } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { MetricsText } from '../../base/metrics/metrics-text.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import type { ContainerStatus, Runtime } from '../../runtime/port.ts';
import {
  initialProbeState,
  type ProbeKind,
  type ProbeOutcome,
  type ProbeState,
  probeTiming,
  stepProbe,
} from '../core/pod-plan/probe.ts';
import type { ProbeResults } from '../core/pod-plan/snapshot.ts';
import { check } from './checks.ts';
import type { ProbeNetwork } from './port.ts';

interface Loop {
  readonly kind: ProbeKind;
  readonly probe: Probe;
  state: ProbeState;
  readonly counts: Record<ProbeOutcome, number>;
  timer: Timer | undefined;
  running: boolean;
}

interface Target {
  readonly uid: Uid;
  pod: Pod;
  readonly container: Container;
  readonly status: ContainerStatus;
  ip: string;
  readonly loops: Map<ProbeKind, Loop>;
  stopped: boolean;
}

export interface ProberOptions {
  readonly runtime: Runtime;
  readonly network: ProbeNetwork;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Called when the result of a probe changes. */
  readonly onResult: (uid: Uid) => void;
  readonly event: (pod: Pod, container: string, reason: 'Unhealthy' | 'ProbeWarning', message: string) => void;
}

/**
 * A probe over the network ends at its timeout. If the probe ends later than its timeout by this time, this process did
 * not run in time, and the answer may be unread. Such a failure is ignored: on an overloaded host, restarts of
 * containers would add to the load.
 */
const LATE_MS = 500;
const CAPITALISED = { liveness: 'Liveness', readiness: 'Readiness', startup: 'Startup' } as const;

/** Runs the probes of running containers, with one timer per probe. Source: pkg/kubelet/prober. */
export class Prober {
  private readonly options: ProberOptions;
  private readonly targets = new Map<string, Target>();

  constructor(options: ProberOptions) {
    this.options = options;
  }

  /**
   * Starts and stops probes according to the pod's running containers. `assumedReady`: containers that were ready when
   * this kubelet started; they stay ready until a probe fails.
   */
  sync(pod: Pod, running: readonly ContainerStatus[], ip: string, assumedReady: ReadonlySet<string>): void {
    const uid = toUid(pod.metadata?.uid);
    const wanted = new Set<string>();
    const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
    for (const status of running) {
      const container = containers.find((each) => each.name === status.name);
      if (container === undefined || !hasProbe(container)) continue;
      wanted.add(status.id);
      const known = this.targets.get(status.id);
      if (known === undefined) this.add({ uid, pod, container, status, ip }, assumedReady.has(status.id));
      else {
        known.pod = pod;
        known.ip = ip;
      }
    }
    for (const [id, target] of this.targets) {
      if (target.uid === uid && !wanted.has(id)) this.drop(id, target);
    }
  }

  resultsFor(ids: readonly string[]): Map<string, ProbeResults> {
    const found = new Map<string, ProbeResults>();
    for (const id of ids) {
      const target = this.targets.get(id);
      if (target !== undefined) found.set(id, this.resultsOf(target));
    }
    return found;
  }

  /** `prober_probe_total` of the running containers. Source: pkg/kubelet/prober/prober.go. */
  metrics(): string {
    const text = new MetricsText();
    text.family(
      'prober_probe_total',
      'counter',
      'Cumulative number of a liveness, readiness or startup probe for a container by result.',
    );
    for (const { container, pod, loops } of this.targets.values()) {
      const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
      for (const { kind, counts } of loops.values()) {
        for (const [result, count] of Object.entries(counts)) {
          if (count === 0) continue;
          const labels = {
            container: container.name,
            namespace,
            pod: name,
            pod_uid: uid,
            probe_type: CAPITALISED[kind],
            result: result === 'success' ? 'successful' : 'failed',
          };
          text.sample('prober_probe_total', labels, count);
        }
      }
    }
    return text.toString();
  }

  remove(uid: Uid): void {
    for (const [id, target] of this.targets) {
      if (target.uid === uid) this.drop(id, target);
    }
  }

  stop(): void {
    for (const [id, target] of this.targets) this.drop(id, target);
  }

  private resultsOf(target: Target): ProbeResults {
    const results: { -readonly [Key in keyof ProbeResults]: ProbeResults[Key] } = {};
    for (const [kind, loop] of target.loops) {
      if (loop.state.result !== undefined) results[kind] = loop.state.result;
    }
    return results;
  }

  private drop(id: string, target: Target): void {
    target.stopped = true;
    for (const loop of target.loops.values()) loop.timer?.cancel();
    this.targets.delete(id);
  }

  private add(probed: Pick<Target, 'uid' | 'pod' | 'container' | 'status' | 'ip'>, assumedReady: boolean): void {
    const { container, status } = probed;
    const target: Target = { ...probed, loops: new Map(), stopped: false };
    const probes: [ProbeKind, Probe | undefined][] = [
      ['startup', container.startupProbe],
      ['liveness', container.livenessProbe],
      ['readiness', container.readinessProbe],
    ];
    for (const [kind, probe] of probes) {
      if (probe === undefined) continue;
      const initial = initialProbeState(kind);
      const state = assumedReady && kind !== 'liveness' ? { ...initial, result: 'success' as const } : initial;
      const counts = { success: 0, failure: 0 };
      target.loops.set(kind, { kind, probe, state, counts, timer: undefined, running: false });
    }
    this.targets.set(status.id, target);
    const waitsForStartup = target.loops.get('startup')?.state.result === undefined && target.loops.has('startup');
    for (const loop of target.loops.values()) {
      if (loop.kind !== 'startup' && waitsForStartup) continue;
      if (loop.kind === 'startup' && loop.state.result === 'success') continue;
      this.schedule(target, loop, this.firstDelay(target, loop, { adopted: assumedReady }));
    }
  }

  private firstDelay(target: Target, loop: Loop, { adopted }: { readonly adopted: boolean }): number {
    const timing = probeTiming(loop.probe);
    // A start time in the future means that the clock was set back.
    const since = Math.max(0, this.options.clock.nowMs() - target.status.startedAtMs);
    const delay = Math.max(0, timing.initialDelayMs - since);
    // After a restart of the kubelet all containers are found at once, so their probes are spread over a period.
    return adopted ? Math.max(delay, this.options.random.random() * timing.periodMs) : delay;
  }

  private schedule(target: Target, loop: Loop, delayMs: number): void {
    if (target.stopped || loop.state.held) return;
    loop.timer?.cancel();
    loop.timer = this.options.clock.setTimer(delayMs, () => void this.run(target, loop));
  }

  private async run(target: Target, loop: Loop): Promise<void> {
    if (loop.running || target.stopped) return;
    loop.running = true;
    const timing = probeTiming(loop.probe);
    const startedMs = this.options.clock.monotonicMs();
    const { runtime, network } = this.options;
    const result = await check(
      loop.probe,
      { runtime, network, container: target.container, containerId: target.status.id, ip: target.ip },
      timing.timeoutMs,
    );
    loop.running = false;
    if (target.stopped) return;
    const elapsedMs = this.options.clock.monotonicMs() - startedMs;
    const isLate = loop.probe.exec === undefined && elapsedMs > timing.timeoutMs + LATE_MS;
    if (result.outcome === 'failure' && isLate) {
      this.schedule(target, loop, timing.periodMs);
      return;
    }
    loop.counts[result.outcome] += 1;
    const { pod, container } = target;
    const probe = `${CAPITALISED[loop.kind]} probe`;
    if (result.outcome === 'failure')
      this.options.event(pod, container.name, 'Unhealthy', `${probe} failed: ${result.output}`);
    else if (result.warning === true)
      this.options.event(pod, container.name, 'ProbeWarning', `${probe} warning: ${result.output}`);
    const before = loop.state.result;
    loop.state = stepProbe(loop.kind, loop.state, result.outcome, timing);
    if (loop.state.result !== before) this.options.onResult(target.uid);
    if (loop.kind === 'startup' && loop.state.result === 'success') {
      for (const other of target.loops.values()) {
        if (other !== loop) this.schedule(target, other, this.firstDelay(target, other, { adopted: false }));
      }
      return;
    }
    this.schedule(target, loop, Math.max(0, timing.periodMs - elapsedMs));
  }
}

const hasProbe = (container: Container): boolean =>
  container.livenessProbe !== undefined ||
  container.readinessProbe !== undefined ||
  container.startupProbe !== undefined;
