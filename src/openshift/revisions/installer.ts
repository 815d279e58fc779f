/**
 * Installs revisions of one component on this host, and rolls back to the last good one when a new one does not become
 * healthy. Works without an API server, because all required data is on disk.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import {
  attemptOf,
  EMPTY_STATE,
  type HostAction,
  type HostState,
  hostStep,
  installed,
  type NodeReport,
  prunedHere,
  succeeded,
  withFallback,
  withoutRevisions,
} from './core/index.ts';
import type { Inputs, Operand, OperandFiles, OperandHealth, OperandProcess } from './port.ts';

export interface Target {
  readonly revision: number;
  readonly overlay: string;
  readonly reason: string;
  readonly knownFailures: number;
  readonly keepFailed: number;
  readonly keepSucceeded: number;
}

export interface InstallerOptions {
  readonly operand: Operand;
  readonly files: OperandFiles;
  readonly process: OperandProcess;
  /** Revision that the leader assigned to this host; undefined if there is none. */
  readonly target: () => Target | undefined;
  readonly apiAwayMs: () => number;
  /** Ensures that only one component of this host is restarted and on trial at a time. */
  readonly turn: Turn;
  readonly reported: (report: NodeReport) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Lock that a component holds while its new revision is on trial. */
export interface Turn {
  take(operand: Operand): boolean;
  release(operand: Operand): void;
}

const TRIAL_POLL_MS = 1_000;
/**
 * Polling interval while the files differ from the running revision. Polling is required because the API server or the
 * leader may be unavailable.
 */
const POLL_MS = 5_000;
/**
 * Polling interval while the files match the running revision. Changes of files and targets trigger notifications, but
 * sub-directories are not watched.
 */
const SETTLED_POLL_MS = 60_000;
const SETTLE_MS = 300;
const HEALTHY: OperandHealth = { state: 'healthy', message: '' };

export class RevisionInstaller {
  readonly #options: InstallerOptions;
  #state: HostState = EMPTY_STATE;
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  #unwatch: (() => void) | undefined;
  #isStopped = false;
  /**
   * Number of consecutive successful health checks. Two are required, because a component may respond once and then
   * exit.
   */
  #healthyInARow = 0;
  /** Start of the trial by the monotonic clock, because the wall clock may be set meanwhile. */
  #trial: { readonly sinceMs: number; readonly monotonicMs: number } | undefined;
  #complained = '';
  /** Whether the component did not run yet when this process started, so the kubelet will start it. */
  #isFirstStart = false;
  /** Whether the input files and the target match the running revision. */
  #isSettled = false;

  constructor(options: InstallerOptions) {
    this.#options = options;
  }

  /**
   * Called before the kubelet starts the component. `isRunning` is true if the component still runs since an earlier
   * start of this process.
   */
  async prepare(isRunning: boolean): Promise<void> {
    const { files, clock } = this.#options;
    this.#state = await files.readState();
    const { current, trial } = this.#state;
    this.#isFirstStart = !isRunning;
    // A power failure may have interrupted the copy. While the component runs without a trial, its files may be newer.
    if (current !== 0 && (!isRunning || trial !== undefined)) await files.apply(current);
    if (trial !== undefined && !isRunning) await this.#save({ ...this.#state, trial: { sinceMs: clock.nowMs() } });
    if (current === 0 || !isRunning) await this.#round({ isStarting: true });
  }

  start(): void {
    this.#unwatch = this.#options.files.watch(() => this.#schedule(SETTLE_MS));
    this.#schedule(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#unwatch?.();
    await this.#work;
  }

  /**
   * Checks soon whether a revision must be installed. Called when the target or the availability of the API may have
   * changed.
   */
  kick(): void {
    this.#schedule(0);
  }

  /** Installs changed files as a new revision. Called before a requested restart, so no restart is triggered here. */
  async adoptNow(): Promise<void> {
    await this.#enqueue({ isStarting: true });
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => void this.#enqueue({ isStarting: false }));
  }

  #enqueue({ isStarting }: { readonly isStarting: boolean }): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#isStopped) return;
      this.#isSettled = false;
      try {
        await this.#round({ isStarting });
        this.#complained = '';
      } catch (error) {
        const message = messageOf(error);
        if (message !== this.#complained)
          this.#options.log.error('revision not installed; retrying', { error: message });
        this.#complained = message;
      }
      const pollMs = this.#isSettled ? SETTLED_POLL_MS : POLL_MS;
      this.#schedule(this.#state.trial === undefined ? pollMs : TRIAL_POLL_MS);
    });
    return this.#work;
  }

  async #round({ isStarting }: { readonly isStarting: boolean }): Promise<void> {
    const { files, target, apiAwayMs, operand, turn } = this.#options;
    const inputs = await files.inputs();
    const attempt = attemptOf(this.#state);
    const isFailed = attempt?.outcome === 'failed' && attempt.digest === inputs.digest;
    if (this.#state.current !== 0 && !isFailed) await files.follow();
    const health = this.#state.trial === undefined ? HEALTHY : await this.#health(this.#state.trial.sinceMs);
    const wanted = target();
    const action = hostStep(this.#state, {
      trialForMs: this.#trialForMs(),
      digest: inputs.digest,
      restartDigest: inputs.restartDigest,
      changed: await this.#changed(inputs),
      ...(wanted === undefined ? {} : { target: wanted }),
      apiAwayMs: attempt?.digest === inputs.digest ? 0 : apiAwayMs(),
      isStarting,
      health,
    });
    const needsTurn = action.type === 'install' && action.restart && !isStarting;
    if (needsTurn && !turn.take(operand)) return this.#report(inputs);
    await this.#run(action, { isStarting });
    if (this.#state.trial === undefined) turn.release(operand);
    await this.#prune(wanted);
    await this.#report(inputs);
    const { current, trial, failure } = this.#state;
    this.#isSettled =
      current !== 0 &&
      trial === undefined &&
      failure === undefined &&
      attemptOf(this.#state)?.digest === inputs.digest &&
      (wanted === undefined || wanted.revision === current);
  }

  async #health(sinceMs: number): Promise<OperandHealth> {
    const health = await this.#options.process.health(sinceMs);
    this.#healthyInARow = health.state === 'healthy' ? this.#healthyInARow + 1 : 0;
    return health.state === 'healthy' && this.#healthyInARow < 2 ? { ...health, state: 'starting' } : health;
  }

  async #run(action: HostAction, { isStarting }: { readonly isStarting: boolean }): Promise<void> {
    const { files, clock, log, operand, process } = this.#options;
    if (action.type === 'install') {
      const { revision, overlay, reason, restart } = action;
      const { digest, restartDigest } = await files.keep(revision, overlay);
      const isTrial = this.#state.current === 0 ? this.#isFirstStart : restart;
      const atMs = clock.nowMs();
      this.#healthyInARow = 0;
      // Save the state first, so that the next start completes the copy after a power failure.
      await this.#save(
        installed(this.#state, { revision, digest, restartDigest, overlay, reason, atMs, outcome: 'trial' }, isTrial),
      );
      await files.apply(revision);
      log.info('revision installed', { operand, revision, restart, reason });
      if (restart && !isStarting) await process.restart();
    } else if (action.type === 'succeed') {
      await this.#save(succeeded(this.#state, this.#state.trial === undefined ? undefined : this.#trialForMs()));
      log.info('revision healthy', { operand, revision: this.#state.current });
    } else if (action.type === 'fallBack') {
      const failed = this.#state.current;
      await this.#save(withFallback(this.#state, action.to, action.message, clock.nowMs()));
      await files.apply(action.to);
      log.error('revision not healthy; running the last good one', {
        operand,
        revision: failed,
        good: action.to,
        error: action.message,
      });
      await process.restart();
    }
  }

  async #save(state: HostState): Promise<void> {
    await this.#options.files.writeState(state);
    this.#state = state;
    this.#trialForMs();
  }

  /** Duration of the trial so far. After a restart of this process, the duration counts from that restart. */
  #trialForMs(): number {
    const { trial } = this.#state;
    const nowMs = this.#options.clock.monotonicMs();
    if (trial === undefined) this.#trial = undefined;
    else if (this.#trial?.sinceMs !== trial.sinceMs) this.#trial = { sinceMs: trial.sinceMs, monotonicMs: nowMs };
    return this.#trial === undefined ? 0 : nowMs - this.#trial.monotonicMs;
  }

  async #prune(target: Target | undefined): Promise<void> {
    const limits = { failed: target?.keepFailed ?? 5, succeeded: target?.keepSucceeded ?? 5 };
    const pruned = prunedHere(this.#state, limits);
    if (pruned.length === 0) return;
    await this.#save(withoutRevisions(this.#state, pruned));
    for (const revision of pruned) await this.#options.files.remove(revision);
    this.#options.log.info('revisions pruned', { operand: this.#options.operand, revisions: pruned });
  }

  /** Names of the files that have changed since the last attempt. */
  async #changed({ digest, files }: Inputs): Promise<string[]> {
    const attempt = attemptOf(this.#state);
    if (attempt === undefined || attempt.digest === digest) return [];
    const before = (await this.#options.files.kept(attempt.revision))?.files ?? new Map<string, string>();
    const names = new Set([...before.keys(), ...files.keys()]);
    return [...names].filter((name) => before.get(name) !== files.get(name)).sort();
  }

  async #report(inputs: Inputs): Promise<void> {
    const attempt = attemptOf(this.#state);
    if (attempt === undefined) return;
    const { current, trial, failure } = this.#state;
    const { revision, digest, overlay, reason } = attempt;
    this.#options.reported({
      // A revision on trial is reported as current only after it is healthy.
      current: trial === undefined ? current : this.#before(),
      digest: inputs.digest,
      changed: await this.#changed(inputs),
      attempt: { revision, digest, overlay, reason },
      isHealthy: trial === undefined,
      ...(failure === undefined ? {} : { failure }),
    });
  }

  /**
   * Newest good revision other than the one on trial. The first revision of a running component is good without a
   * check.
   */
  #before(): number {
    const { current, revisions } = this.#state;
    const good = revisions.filter((each) => each.outcome === 'good' && each.revision !== current);
    return good.length === 0 ? current : Math.max(...good.map((each) => each.revision));
  }
}
