/**
 * Ends the pods of this node by priority before the machine shuts down. A delay lock of the login manager provides the
 * time. Source: KEP-2000; pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go.
 */
import { toUid } from '../../base/brand.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import {
  type ShutdownGroup,
  type ShutdownPeriod,
  shutdownGraceSeconds,
  shutdownGroups,
} from '../core/pod-plan/shutdown.ts';
import { TERMINATED } from '../core/pod-plan/status.ts';
import type { Rejection } from '../pods/admission.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodServices } from '../pods/services.ts';
import type { LoginManager, ShutdownLock, ShutdownSignals } from './port.ts';
import { hasStopStage } from './stop-stages.ts';

type ShutdownServices = Pick<PodServices, 'events' | 'node' | 'statuses'>;

const RECONNECT_MS = 1_000;
/** Time reserved for the last status reports at the end of the lock. */
const REPORT_MS = 2_000;
const MESSAGE = 'Pod was terminated in response to imminent node shutdown.';
const REJECTION = { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' };

export interface ShutdownDeps {
  /** If undefined, shutdowns are not announced on this host. */
  readonly login: LoginManager | undefined;
  readonly periods: readonly ShutdownPeriod[];
  readonly services: ShutdownServices;
  readonly pods: Pick<PodTable, 'activePods' | 'worker'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Schedules a report of the Node's status. */
  readonly onChanged: () => void;
}

export class ShutdownManager {
  readonly #deps: ShutdownDeps;
  #shuttingDown = false;
  #stopped = false;
  #lock: ShutdownLock | undefined;
  /** The request whose lock is wanted; undefined if no lock is wanted. */
  #request: symbol | undefined;
  /** Number of shutdowns and cancellations that were announced. */
  #announced = 0;
  #signals: ShutdownSignals | undefined;
  #timer: Timer | undefined;
  #complained: string | undefined;

  constructor(deps: ShutdownDeps) {
    this.#deps = deps;
  }

  /** Reason why the node is not ready. Undefined while no shutdown is in progress. */
  get notReady(): string | undefined {
    return this.#shuttingDown ? 'node is shutting down' : undefined;
  }

  /** Reason for which new pods are rejected during a node shutdown; undefined when pods may start. */
  rejection(): Rejection | undefined {
    return this.#shuttingDown ? REJECTION : undefined;
  }

  /** Does nothing without a period. Retries until the login manager responds. */
  start(): void {
    const { login, periods, log } = this.#deps;
    if (periods.every(({ seconds }) => seconds === 0)) return;
    if (login === undefined) {
      log.warn('no graceful node shutdown: systemd is not the service manager of this host');
      return;
    }
    void this.#connect(login);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#signals?.close();
    this.#unlock();
  }

  async #connect(login: LoginManager): Promise<void> {
    const { clock, log, periods } = this.#deps;
    try {
      await this.#allow(login, 1_000 * periods.reduce((sum, { seconds }) => sum + seconds, 0));
      const signals = await login.follow((begins) => void this.#onShutdownSignal(login, begins));
      this.#signals = signals;
      await this.#takeLock(login);
      if (this.#stopped) {
        this.stop();
        return;
      }
      this.#complained = undefined;
      log.info('node shutdown is delayed for pods');
      await signals.lost;
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#complained) log.warn('node shutdown manager not started', { error: message });
      this.#complained = message;
    }
    this.#signals?.close();
    this.#signals = undefined;
    this.#unlock();
    if (this.#stopped) return;
    this.#timer = clock.setTimer(RECONNECT_MS, () => void this.#connect(login));
  }

  /**
   * Raises the login manager's limit for delays if necessary. Throws CodedError 'systemd' if the limit stays below
   * `wantedMs`.
   */
  async #allow(login: LoginManager, wantedMs: number): Promise<void> {
    if ((await login.maxDelayMs()) >= wantedMs) return;
    await login.raiseMaxDelay(wantedMs);
    const currentMs = await login.maxDelayMs();
    if (currentMs >= wantedMs) return;
    throw new CodedError(
      'systemd',
      `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${wantedMs / 1000}s ` +
        `(ShutdownGracePeriod), current value of InhibitDelayMaxSec (${currentMs / 1000}s) is less than requested ` +
        'ShutdownGracePeriod',
    );
  }

  /** Takes a lock in place of the current one. A lock that is no longer wanted when it is granted is released. */
  async #takeLock(login: LoginManager): Promise<void> {
    this.#unlock();
    const request = Symbol('lock');
    this.#request = request;
    const lock = await login.lock();
    if (this.#request === request) this.#lock = lock;
    else lock.release();
  }

  #unlock(): void {
    this.#request = undefined;
    this.#lock?.release();
    this.#lock = undefined;
  }

  async #onShutdownSignal(login: LoginManager, begins: boolean): Promise<void> {
    const { services, log, onChanged } = this.#deps;
    if (begins === this.#shuttingDown || this.#stopped) return;
    this.#shuttingDown = begins;
    this.#announced += 1;
    const announced = this.#announced;
    const what = begins ? 'shutdown event' : 'shutdown cancellation';
    log.info(`detected ${what}`);
    const node = services.node();
    if (node !== undefined) services.events.about(node, 'Normal', 'NodeShutdown', `Shutdown manager detected ${what}`);
    onChanged();
    try {
      if (!begins) await this.#takeLock(login);
      else await this.#endPods();
    } catch (error) {
      log.warn('node shutdown failed', { error: messageOf(error) });
    } finally {
      // After a cancellation, the lock belongs to the next shutdown.
      if (begins && announced === this.#announced) this.#unlock();
    }
  }

  /**
   * Excludes the control plane's own pods: the host process stops them when its unit stops, so that status reports
   * still arrive.
   */
  async #endPods(): Promise<void> {
    const { services, pods, periods, log } = this.#deps;
    const wanted = pods.activePods().filter((pod) => !hasStopStage(pod));
    for (const group of shutdownGroups(periods, wanted)) {
      log.info('terminating pods for the node shutdown', {
        priority: group.priority,
        pods: group.pods.length,
        seconds: group.seconds,
      });
      if (await this.#endGroup(group)) continue;
      log.info('shutdown manager pod killing time out', { gracePeriod: group.seconds, priority: group.priority });
    }
    await this.#within(REPORT_MS, services.statuses.written(wanted.map(({ metadata }) => toUid(metadata?.uid))));
  }

  /** Ends the pods of a group. Returns false if they did not end within the group's time. */
  #endGroup(group: ShutdownGroup): Promise<boolean> {
    const workers = group.pods.flatMap((pod) => {
      const worker = this.#deps.pods.worker(toUid(pod.metadata?.uid));
      if (worker === undefined) return [];
      worker.terminate(shutdownGraceSeconds(pod, group), { reason: TERMINATED, message: MESSAGE });
      return [worker];
    });
    return this.#within(group.seconds * 1000, Promise.all(workers.map((worker) => worker.ended())));
  }

  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const timer = this.#deps.clock.setTimer(ms, () => late.resolve(false));
    const ended = await Promise.race([work.then(() => true), late.promise]);
    timer.cancel();
    return ended;
  }
}
