/**
 * Machine config daemon: applies the desiredConfig of its Node to the host and reports drift. A new config is on trial
 * until the Node is Ready again; otherwise the daemon rolls back. The daemon reacts to changes of the Node and of
 * files, and does not poll while it is idle. Source: openshift/machine-config-operator docs/MachineConfigDaemon.md.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Timer } from '../../../base/time/clock.ts';
import type { Informer } from '../../../client/types.ts';
import {
  CONFIG_REASON,
  CONFIG_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_APPLIED_DRAIN,
  type MachineConfigState,
} from '../kinds/machine-config-types.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import { type DriftWatch, watchDrift } from './drift.ts';
import { executeSteps } from './execute-steps.ts';
import { type AppliedConfig, type ConfigTrial, NO_NOTE, type Note, noteOf } from './host-record.ts';
import { annotationOf, cutReason, setDesiredDrain, setNodeState } from './node-state.ts';
import { checkRunningKernel, planChange } from './plan-change.ts';
import { desiredPolicies } from './policies.ts';
import { type Settling, watchSettling } from './settling.ts';
import { addressesOf, awaitReady } from './trial.ts';

export interface MachineConfigDaemon {
  /**
   * Resumes a change that was interrupted, and then follows the Node. Does not wait for the API server and never
   * throws.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const RETRY_MIN_MS = 2_000;
const RETRY_MAX_MS = 60_000;
const DRAIN_TIMEOUT_MS = 3_600_000;
const SEE_CONTROLLER = 'Please see machine-config-controller logs for more information';

export const createMachineConfigDaemon = (options: MachineConfigDaemonOptions): MachineConfigDaemon =>
  new Daemon(options);

class Daemon implements MachineConfigDaemon {
  readonly #options: MachineConfigDaemonOptions;
  readonly #nodes: Informer<Node>;
  readonly #drift: DriftWatch;
  readonly #stopping = new AbortController();
  readonly #closers: (() => void)[] = [];
  #note: Note = NO_NOTE;
  #running: Promise<void> | undefined;
  #again = false;
  #retry: Timer | undefined;
  #failures = 0;
  #drainTimer: Timer | undefined;
  #drainExpired = false;
  #settling: Settling | undefined;
  /** Whether a reboot was requested. No work starts after that, because it would request another reboot. */
  #rebooting = false;

  constructor(options: MachineConfigDaemonOptions) {
    this.#options = options;
    const { informers, nodeName } = options;
    this.#nodes = informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
    this.#drift = watchDrift(options, {
      note: () => this.#note,
      event: (node, type, reason, message) => this.#event(node, type, reason, message),
    });
  }

  async start(): Promise<void> {
    const { files, log } = this.#options;
    try {
      this.#note = noteOf(await files.open());
    } catch (error) {
      log.error('machine config not readable; the daemon applies none', { error: messageOf(error) });
      return;
    }
    const wake = (): void => this.#wake();
    const watch = files.watch(wake);
    this.#closers.push(() => watch.close(), this.#nodes.onChange({ added: wake, updated: wake }));
    this.#nodes.start();
    log.info('Config Drift Monitor started');
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#settling?.stop();
    for (const close of this.#closers) close();
    for (const timer of [this.#retry, this.#drainTimer]) timer?.cancel();
    await this.#running;
  }

  #wake(): void {
    this.#again = true;
    if (this.#running !== undefined || this.#rebooting || this.#stopping.signal.aborted) return;
    this.#running = this.#work().finally(() => {
      this.#running = undefined;
      // `wake` was called after the last check of the loop, so another round is required.
      if (this.#again) this.#wake();
    });
  }

  async #work(): Promise<void> {
    while (this.#again && !this.#rebooting && !this.#stopping.signal.aborted) {
      this.#again = false;
      this.#retry?.cancel();
      await this.#sync();
    }
  }

  async #sync(): Promise<void> {
    const { clock, log } = this.#options;
    const node = this.#node();
    if (node === undefined) return;
    const desired = annotationOf(node, DESIRED_CONFIG);
    try {
      if (await this.#settled(node)) return;
      const { applied, trial, failed } = this.#note;
      if (trial !== undefined && trial.settling !== true) await this.#confirm(node);
      else if (desired === '') return;
      else if (failed?.name === desired) await this.#report(node, 'Degraded', failed.reason);
      else if (applied.name === desired) await this.#settle(node);
      else await this.#change(node, desired);
      this.#failures = 0;
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#failures += 1;
      const reason = messageOf(error);
      log.warn('machine config not applied; retrying', { config: desired, error: reason });
      const delayMs = Math.min(RETRY_MIN_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS);
      this.#retry = clock.setTimer(delayMs, () => this.#wake());
      if (!isApiError(error, 'ServiceUnavailable'))
        await this.#report(node, 'Degraded', reason).catch((error: unknown) =>
          log.warn('machine config status not reported', { error: messageOf(error) }),
        );
    }
  }

  async #change(node: Node, desired: string): Promise<void> {
    const { client, files, kernel, log } = this.#options;
    const { spec } = await client.resource(resources.machineConfigs).get(desired);
    const from = this.#note.applied;
    const to = { name: desired, ...(spec === undefined ? {} : { spec }) };
    const policies = await desiredPolicies(client);
    const plan = await planChange(from, to, policies, this.#options);
    if (plan.unreconcilable !== undefined) {
      const reason = `can't reconcile config ${from.name ?? 'none'} with ${desired}: ${plan.unreconcilable}`;
      if (annotationOf(node, CONFIG_REASON) !== cutReason(reason))
        this.#event(node, 'Warning', 'FailedToReconcile', reason);
      await this.#report(node, 'Unreconcilable', reason);
      return;
    }
    // The states Degraded and Unreconcilable require attention, so they are shown until the change is done.
    const state = annotationOf(node, CONFIG_STATE);
    if (state !== 'Degraded' && state !== 'Unreconcilable') await this.#report(node, 'Working');
    if (plan.disruption.drain && !(await this.#drained(node, `drain-${desired}`))) return;
    log.info('applying machine config', { from: from.name, to: desired, steps: plan.disruption.steps.length });
    const previous = this.#note.trial;
    const own = this.#options.addresses();
    const trial: ConfigTrial = {
      from: previous?.from ?? from,
      bootId: await kernel.bootId(),
      policies,
      addresses: previous?.addresses ?? addressesOf(node).filter((address) => own.includes(address)),
      mayCutOff: plan.mayCutOff || previous !== undefined,
      ...(previous === undefined ? {} : { before: from }),
    };
    const next: Note = { applied: to, trial };
    await files.apply(plan.tree, next);
    this.#settling?.stop();
    this.#settling = undefined;
    this.#note = next;
    await this.#confirm(node);
  }

  /**
   * Ends the period in which the Node must stay Ready, if its outcome is known. Returns true if the Node did not stay
   * Ready and the old config was restored.
   */
  async #settled(node: Node): Promise<boolean> {
    const { applied, trial, failed } = this.#note;
    if (trial?.settling !== true) return false;
    this.#settling ??= watchSettling(this.#options, trial, () => this.#wake());
    const { outcome } = this.#settling;
    if (outcome === undefined) return false;
    if (outcome.failed !== undefined) await this.#rollBack(node, outcome.failed);
    else await this.#keep({ applied, ...(failed === undefined ? {} : { failed }) });
    this.#settling = undefined;
    if (outcome.failed === undefined) this.#options.log.info('machine config confirmed', { config: applied.name });
    return outcome.failed !== undefined;
  }

  async #keep(note: Note): Promise<void> {
    await this.#options.files.note(note);
    this.#note = note;
  }

  /** Executes the steps of the config on trial and waits until the Node is Ready. Rolls back if that fails. */
  async #confirm(node: Node): Promise<void> {
    const { kernel, log } = this.#options;
    const { applied, trial } = this.#note;
    const { signal } = this.#stopping;
    if (trial === undefined) return;
    try {
      const bootId = await kernel.bootId();
      const sameBoot =
        bootId === trial.bootId || (trial.readyToBoot !== true && !(await hasArguments(applied, kernel)));
      const { addresses = [], policies, before = trial.from } = trial;
      const beforeReboot = () => this.#keep({ applied, trial: { ...trial, bootId, readyToBoot: true } });
      const kubeletSince = sameBoot
        ? await executeSteps(before, applied, policies, this.#options, beforeReboot)
        : undefined;
      if (kubeletSince === 'rebooting') {
        this.#rebooting = true;
        return;
      }
      await awaitReady(this.#options, applied, { sameBoot, kubeletSince, addresses, signal });
    } catch (error) {
      if (!signal.aborted) await this.#rollBack(node, messageOf(error));
      return;
    }
    if (signal.aborted) return;
    await this.#keep(trial.mayCutOff === true ? { applied, trial: { ...trial, settling: true } } : { applied });
    log.info('machine config applied', { config: applied.name });
    if (trial.mayCutOff === true) this.#wake();
    await this.#settle(this.#node() ?? node);
  }

  async #rollBack(node: Node, why: string): Promise<void> {
    const { files, log } = this.#options;
    const { applied, trial, failed } = this.#note;
    const { policies = {} } = trial ?? {};
    const [from, rest] = previousOf(trial);
    const reason = `rolled back from ${applied.name} to ${from.name ?? 'no config'}: ${why}`;
    log.error('machine config rolled back', { from: applied.name, to: from.name, reason: why });
    const plan = await planChange(applied, from, policies, this.#options);
    if (plan.unreconcilable !== undefined) throw new Error(`${reason}; ${plan.unreconcilable}`);
    const next: Note = { applied: from, ...rest, failed: { name: failed?.name ?? applied.name ?? '', reason } };
    await files.apply(plan.tree, next);
    this.#note = next;
    await executeSteps(applied, from, policies, this.#options).catch((error: unknown) =>
      log.warn('rollback incomplete', { error: messageOf(error) }),
    );
    this.#event(node, 'Warning', 'ConfigRolledBack', reason);
    await this.#report(node, 'Degraded', reason);
  }

  /**
   * Called when the files match the desired config. Uncordons the node after a drain, and reports Done unless files
   * have drifted.
   */
  async #settle(node: Node): Promise<void> {
    const request = annotationOf(node, DESIRED_DRAIN);
    const uncordon = `uncordon-${this.#note.applied.name}`;
    if (request.startsWith('drain-') || request === uncordon) {
      if (!(await this.#drained(node, uncordon))) return;
    }
    const drifted = await this.#drift.check(node);
    await (drifted === undefined ? this.#report(node, 'Done') : this.#report(node, 'Degraded', drifted));
  }

  /**
   * Requests a drain or uncordon. Returns true once the drain controller has completed it. Throws after an hour, as
   * upstream.
   */
  async #drained(node: Node, request: string): Promise<boolean> {
    const { client, clock, nodeName } = this.#options;
    if (annotationOf(node, LAST_APPLIED_DRAIN) === request && annotationOf(node, DESIRED_DRAIN) === request) {
      this.#drainTimer?.cancel();
      this.#drainTimer = undefined;
      this.#drainExpired = false;
      return true;
    }
    if (this.#drainExpired) throw new Error(`failed to drain node: ${nodeName} after 1 hour. ${SEE_CONTROLLER}`);
    this.#drainTimer ??= clock.setTimer(DRAIN_TIMEOUT_MS, () => {
      this.#drainExpired = true;
      this.#wake();
    });
    await setDesiredDrain(client, node, request);
    return false;
  }

  #node(): Node | undefined {
    return this.#nodes.get(this.#options.nodeName);
  }

  #report(node: Node, state: MachineConfigState, reason = ''): Promise<void> {
    return setNodeState(this.#options.client, node, { state, reason, currentConfig: this.#note.applied.name });
  }

  #event(node: Node, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#options.recorder.event({ ...node, apiVersion: 'v1', kind: 'Node' }, type, reason, message);
  }
}

/** Config to which a trial rolls back. If the config before it was itself on trial, that config stays on trial. */
function previousOf(trial: ConfigTrial | undefined): readonly [AppliedConfig, Pick<Note, 'trial'>] {
  const { from = {}, before, settling } = trial ?? {};
  if (trial === undefined || before === undefined || settling === true) return [from, {}];
  const { before: _, ...rest } = trial;
  return [before, { trial: { ...rest, settling: true } }];
}

const hasArguments = ({ spec }: AppliedConfig, kernel: MachineConfigDaemonOptions['kernel']): Promise<boolean> =>
  checkRunningKernel(spec, kernel).then(
    () => true,
    () => false,
  );
