import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ContainerStatus, Runtime, SandboxStatus } from '../../runtime/port.ts';
import { LABELS } from '../core/pod-plan/snapshot.ts';

export interface PodView {
  readonly sandboxes: readonly SandboxStatus[];
  readonly containers: readonly ContainerStatus[];
}

const EMPTY: PodView = { sandboxes: [], containers: [] };
/** Fallback for a lost notification of the runtime. */
const SAFETY_RELIST_MS = 60_000;
const RETRY_MS = 500;

/**
 * Cache of the runtime's sandboxes and containers by pod UID. A notification of the runtime triggers a new list;
 * notifications during a list cause one more list. Listeners receive the UIDs of changed pods.
 */
export class RuntimeView {
  private readonly runtime: Runtime;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly onChanged: (uids: readonly Uid[]) => void;
  private pods = new Map<Uid, PodView>();
  private fingerprints = new Map<Uid, string>();
  private current: Promise<void> | undefined;
  private following: Promise<void> | undefined;
  private unsubscribe: (() => void) | undefined;
  private timer: Timer | undefined;
  private stopped = false;
  /** Last error of the runtime. Undefined while the runtime responds. */
  failure: string | undefined = 'container runtime has not reported its status yet';

  constructor(options: {
    readonly runtime: Runtime;
    readonly clock: Clock;
    readonly log: Log;
    readonly onChanged: (uids: readonly Uid[]) => void;
  }) {
    this.runtime = options.runtime;
    this.clock = options.clock;
    this.log = options.log;
    this.onChanged = options.onChanged;
  }

  async start(): Promise<void> {
    this.unsubscribe = this.runtime.onChange(() => void this.refresh());
    await this.refresh();
    this.arm(this.failure === undefined ? SAFETY_RELIST_MS : RETRY_MS);
  }

  stop(): void {
    this.stopped = true;
    this.unsubscribe?.();
    this.timer?.cancel();
  }

  get(uid: Uid): PodView {
    return this.pods.get(uid) ?? EMPTY;
  }

  uids(): Uid[] {
    return [...this.pods.keys()];
  }

  /** Resolves when a list that started after this call has been processed. Never rejects; see `failure`. */
  refresh(): Promise<void> {
    if (this.current === undefined) {
      this.current = this.list().finally(() => {
        this.current = undefined;
      });
      return this.current;
    }
    this.following ??= this.current.then(() => {
      this.following = undefined;
      return this.refresh();
    });
    return this.following;
  }

  private arm(delayMs: number): void {
    if (this.stopped) return;
    this.timer = this.clock.setTimer(delayMs, () => {
      void this.refresh().then(() => this.arm(this.failure === undefined ? SAFETY_RELIST_MS : RETRY_MS));
    });
  }

  private async list(): Promise<void> {
    try {
      const [sandboxes, containers] = await Promise.all([
        this.runtime.listPodSandboxes(),
        this.runtime.listContainers(),
      ]);
      this.take(sandboxes, containers);
      this.failure = undefined;
    } catch (error) {
      if (this.failure === undefined) this.log.error('container runtime does not answer', { error: messageOf(error) });
      this.failure = messageOf(error);
    }
  }

  private take(sandboxes: readonly SandboxStatus[], containers: readonly ContainerStatus[]): void {
    const grouped = new Map<Uid, { sandboxes: SandboxStatus[]; containers: ContainerStatus[] }>();
    const uidOfSandbox = new Map<string, Uid>();
    const viewOf = (uid: Uid): { sandboxes: SandboxStatus[]; containers: ContainerStatus[] } => {
      let view = grouped.get(uid);
      if (view === undefined) {
        view = { sandboxes: [], containers: [] };
        grouped.set(uid, view);
      }
      return view;
    };
    for (const sandbox of sandboxes) {
      uidOfSandbox.set(sandbox.id, sandbox.uid);
      viewOf(sandbox.uid).sandboxes.push(sandbox);
    }
    for (const container of containers) {
      const uid = uidOfSandbox.get(container.sandboxId) ?? container.labels[LABELS.podUid];
      if (uid !== undefined) viewOf(toUid(uid)).containers.push(container);
    }
    const fingerprints = new Map<Uid, string>();
    const changed: Uid[] = [];
    for (const [uid, view] of grouped) {
      const fingerprint = fingerprintOf(view);
      fingerprints.set(uid, fingerprint);
      if (this.fingerprints.get(uid) !== fingerprint) changed.push(uid);
    }
    for (const uid of this.fingerprints.keys()) {
      if (!fingerprints.has(uid)) changed.push(uid);
    }
    this.pods = grouped;
    this.fingerprints = fingerprints;
    if (changed.length > 0) this.onChanged(changed);
  }
}

function fingerprintOf(view: PodView): string {
  return [
    ...view.sandboxes.map((sandbox) => `${sandbox.id}=${sandbox.state}/${sandbox.ips.join('+')}`),
    ...view.containers.map((container) => `${container.id}=${container.state}/${container.finishedAtMs}`),
  ]
    .sort()
    .join(',');
}
