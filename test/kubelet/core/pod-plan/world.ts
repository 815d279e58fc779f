/** Simulation that executes plans at once, to test pods without a runtime. */
import type { Pod, PodStatus } from '../../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../../src/base/brand.ts';
import { advanceBackOff, type BackOffEntry, restartLimits } from '../../../../src/kubelet/core/pod-plan/back-off.ts';
import { containerHash } from '../../../../src/kubelet/core/pod-plan/hash.ts';
import { type PodAction, type PodPlan, planPod } from '../../../../src/kubelet/core/pod-plan/plan.ts';
import {
  ANNOTATIONS,
  type PodSnapshot,
  type ProbeResults,
  startedContainers,
} from '../../../../src/kubelet/core/pod-plan/snapshot.ts';
import { podStatus } from '../../../../src/kubelet/core/pod-plan/status.ts';
import type { ContainerStatus, SandboxStatus } from '../../../../src/runtime/port.ts';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

export class World {
  pod: Pod;
  nowMs = 1_800_000_000_000;
  sandboxes: Mutable<SandboxStatus>[] = [];
  containers: Mutable<ContainerStatus>[] = [];
  probeResults = new Map<string, ProbeResults>();
  backOff = new Map<string, BackOffEntry>();
  termination: { startedAtMs: number; graceSeconds: number } | undefined;
  started: readonly ContainerStatus[] = [];
  status: PodStatus = {};
  /** `start main#0`, `kill main`, `sandbox#0` …, in order of execution. */
  readonly history: string[] = [];
  readonly startedAtMs = this.nowMs;

  constructor(spec: Pod['spec'], uid = 'uid') {
    this.pod = { metadata: { name: 'p', namespace: 'n', uid }, ...(spec === undefined ? {} : { spec }) };
  }

  snapshot(): PodSnapshot {
    return {
      pod: this.pod,
      sandboxes: this.sandboxes,
      containers: this.containers,
      started: this.started,
      probeResults: this.probeResults,
      startFailures: new Map(),
      backOff: this.backOff,
      restartCounts: new Map(),
      ...(this.termination === undefined ? {} : { termination: this.termination }),
      startedAtMs: this.startedAtMs,
    };
  }

  plan(): PodPlan {
    return planPod(this.snapshot(), this.nowMs);
  }

  /** Plans and executes until no actions are left. */
  settle(): PodPlan {
    for (let round = 0; round < 50; round += 1) {
      const plan = this.plan();
      this.report(plan);
      if (plan.actions.length === 0) return plan;
      for (const action of plan.actions) this.carryOut(action);
      this.nowMs += 1;
    }
    throw new Error(`does not settle: ${this.history.slice(-10).join(', ')}`);
  }

  report(plan: PodPlan): PodStatus {
    this.status = podStatus({
      snapshot: this.snapshot(),
      plan,
      previous: this.status,
      hostIps: ['192.0.2.1'],
      qosClass: 'BestEffort',
      runtimeName: 'test',
      recursiveReadOnlyMounts: true,
      nowMs: this.nowMs,
    });
    return this.status;
  }

  running(): string[] {
    return this.containers.filter((each) => each.state === 'running').map((each) => each.name);
  }

  latest(name: string): Mutable<ContainerStatus> {
    const found = this.containers.filter((each) => each.name === name).sort((a, b) => b.attempt - a.attempt)[0];
    if (found === undefined) throw new Error(`${name} never started`);
    return found;
  }

  exit(name: string, exitCode: number, reason = exitCode === 0 ? 'Completed' : 'Error'): void {
    const container = this.latest(name);
    container.state = 'exited';
    container.exitCode = exitCode;
    container.reason = reason;
    container.finishedAtMs = this.nowMs;
  }

  /** Simulates a new kubelet with the API's status and a runtime without records. */
  loseRecords(): void {
    this.started = startedContainers(this.status);
    this.sandboxes = [];
    this.containers = [];
  }

  loseSandbox(): void {
    for (const sandbox of this.sandboxes) sandbox.state = 'notready';
    for (const container of this.containers) if (container.state === 'running') this.exit(container.name, 137);
  }

  carryOut(action: PodAction): void {
    switch (action.type) {
      case 'createSandbox':
        for (const sandbox of this.sandboxes) sandbox.state = 'notready';
        this.history.push(`sandbox#${action.attempt}`);
        this.sandboxes.push({
          id: `s${action.attempt}`,
          name: 'p',
          namespace: 'n',
          uid: toUid('uid'),
          attempt: action.attempt,
          state: 'ready',
          createdAtMs: this.nowMs,
          ips: this.pod.spec?.hostNetwork === true ? [] : ['10.0.0.1'],
          hostNetwork: this.pod.spec?.hostNetwork === true,
          labels: {},
          annotations: {},
        });
        return;
      case 'stopSandbox': {
        this.history.push('stop sandbox');
        for (const sandbox of this.sandboxes) if (sandbox.id === action.sandboxId) sandbox.state = 'notready';
        return;
      }
      case 'killContainer':
        this.history.push(`kill ${action.name}`);
        this.exit(action.name, 143);
        this.probeResults.delete(action.containerId);
        return;
      case 'startContainer': {
        this.history.push(`start ${action.name}#${action.attempt}`);
        if (action.lastFinishedAtMs !== undefined) {
          this.backOff.set(
            action.name,
            advanceBackOff(this.backOff.get(action.name), action.lastFinishedAtMs, this.nowMs, restartLimits(this.pod)),
          );
        }
        const all = [...(this.pod.spec?.containers ?? []), ...(this.pod.spec?.initContainers ?? [])];
        const container = all.find((each) => each.name === action.name);
        this.containers.push({
          id: `${action.name}-${action.attempt}`,
          sandboxId: action.sandboxId,
          name: action.name,
          attempt: action.attempt,
          image: 'i',
          imageId: 'sha256:i',
          state: 'running',
          createdAtMs: this.nowMs,
          startedAtMs: this.nowMs,
          finishedAtMs: 0,
          exitCode: 0,
          reason: '',
          message: '',
          logPath: '',
          pid: 1,
          labels: {},
          annotations: container === undefined ? {} : { [ANNOTATIONS.containerHash]: containerHash(container) },
        });
      }
    }
  }
}
