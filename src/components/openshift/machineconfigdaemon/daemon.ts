/**
 * The machine config daemon: makes the host what its Node's desiredConfig says, on trial until the Node is Ready again,
 * and reports drift. It works on changes of the Node and of files; nothing is polled while there is nothing to do.
 * Source: openshift/machine-config-operator docs/MachineConfigDaemon.md.
 */
import type { Node } from 'kubernetes-types/core/v1';
import {
  CONFIG_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_APPLIED_DRAIN,
  type MachineConfigState,
} from '../../../api/machineconfig/types.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { Timer } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import { planChange } from './change.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import { watchDrift } from './drift.ts';
import { annotationOf, setDesiredDrain, setNodeState } from './node-state.ts';
import { jsonOf, NO_NOTE, type Note, noteOf } from './note.ts';
import { desiredPolicies } from './policies.ts';
import { carryOut } from './steps.ts';
import { awaitReady } from './trial.ts';

export interface MachineConfigDaemon {
  /** Replays an interrupted change at once; the rest waits for the API server. Never throws. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const RETRY_MIN_MS = 2_000;
const RETRY_MAX_MS = 60_000;
const DRAIN_TIMEOUT_MS = 3_600_000;

export function createMachineConfigDaemon(options: MachineConfigDaemonOptions): MachineConfigDaemon {
  const { nodeName, client, recorder, files, kernel, clock, log } = options;
  const nodes = options.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const stopping = new AbortController();
  const closers: (() => void)[] = [];
  let note: Note = NO_NOTE;
  let running: Promise<void> | undefined;
  let again = false;
  let retry: Timer | undefined;
  let failures = 0;
  let drainTimer: Timer | undefined;
  let drainExpired = false;

  const report = async (node: Node, state: MachineConfigState, reason = ''): Promise<void> =>
    setNodeState(client, node, { state, reason, currentConfig: note.applied.name });
  const event = (node: Node, type: 'Normal' | 'Warning', reason: string, message: string): void =>
    recorder.event({ ...node, apiVersion: 'v1', kind: 'Node' }, type, reason, message);
  const remember = async (next: Note): Promise<void> => {
    await files.note(jsonOf(next));
    note = next;
  };
  const drift = watchDrift(options, {
    note: () => note,
    event,
  });

  /** True once the drain controller has carried out the request. */
  const drained = async (node: Node, request: string): Promise<boolean> => {
    if (annotationOf(node, LAST_APPLIED_DRAIN) === request && annotationOf(node, DESIRED_DRAIN) === request) {
      drainTimer?.cancel();
      drainTimer = undefined;
      drainExpired = false;
      return true;
    }
    if (drainExpired)
      throw new Error(
        `failed to drain node: ${nodeName} after 1 hour. Please see machine-config-controller logs for more information`,
      );
    drainTimer ??= clock.setTimer(DRAIN_TIMEOUT_MS, () => {
      drainExpired = true;
      wake();
    });
    await setDesiredDrain(client, node, request);
    return false;
  };

  const change = async (node: Node, desired: string): Promise<void> => {
    const { spec } = await client.resource(resources.machineConfigs).get(desired);
    const from = note.applied;
    const to = { name: desired, ...(spec === undefined ? {} : { spec }) };
    const policies = await desiredPolicies(client);
    const plan = await planChange(from, to, policies, options);
    if (plan.unreconcilable !== undefined) {
      const reason = `can't reconcile config ${from.name ?? 'none'} with ${desired}: ${plan.unreconcilable}`;
      event(node, 'Warning', 'FailedToReconcile', reason);
      await report(node, 'Unreconcilable', reason);
      return;
    }
    // A state that needs attention stays until the change is done.
    const state = annotationOf(node, CONFIG_STATE);
    if (state !== 'Degraded' && state !== 'Unreconcilable') await report(node, 'Working');
    if (plan.disruption.drain && !(await drained(node, `drain-${desired}`))) return;
    log.info('applying machine config', { from: from.name, to: desired, steps: plan.disruption.steps.length });
    const next: Note = { applied: to, trial: { from, bootId: await kernel.bootId(), policies } };
    await files.apply(plan.tree, jsonOf(next));
    note = next;
    await confirm(node, next);
  };

  /** Ends a trial: the host is Ready with its new config, or has the old one again. */
  const confirm = async (node: Node, tried: Note): Promise<void> => {
    const { applied, trial } = tried;
    if (trial === undefined) return;
    try {
      const sameBoot = (await kernel.bootId()) === trial.bootId;
      const kubeletSince = sameBoot ? await carryOut(trial.from, applied, trial.policies, options) : undefined;
      if (kubeletSince === 'rebooting') return;
      await awaitReady(options, applied, { sameBoot, kubeletSince, signal: stopping.signal });
    } catch (error) {
      if (stopping.signal.aborted) return;
      await rollBack(node, tried, messageOf(error));
      return;
    }
    if (stopping.signal.aborted) return;
    await remember({ applied });
    log.info('machine config applied', { config: applied.name });
    await settle(current() ?? node);
  };

  const rollBack = async (node: Node, { applied, trial }: Note, why: string): Promise<void> => {
    const { from = {}, policies = {} } = trial ?? {};
    const reason = `rolled back from ${applied.name} to ${from.name ?? 'no config'}: ${why}`;
    log.error('machine config rolled back', { from: applied.name, to: from.name, reason: why });
    const plan = await planChange(applied, from, policies, options);
    if (plan.unreconcilable !== undefined) throw new Error(`${reason}; ${plan.unreconcilable}`);
    const next: Note = { applied: from, failed: { name: applied.name ?? '', reason } };
    await files.apply(plan.tree, jsonOf(next));
    note = next;
    await carryOut(applied, from, policies, options).catch((error: unknown) =>
      log.warn('roll-back not carried out in full', { error: messageOf(error) }),
    );
    event(node, 'Warning', 'ConfigRolledBack', reason);
    await report(node, 'Degraded', reason);
  };

  /** The files are what the Node desires: uncordon after a drain, then Done unless they have drifted. */
  const settle = async (node: Node): Promise<void> => {
    const request = annotationOf(node, DESIRED_DRAIN);
    const uncordon = `uncordon-${note.applied.name}`;
    if (request !== '' && request !== uncordon && request.startsWith('drain-')) {
      await drained(node, uncordon);
      return;
    }
    if (request === uncordon && !(await drained(node, uncordon))) return;
    const drifted = await drift.check(node);
    await (drifted === undefined ? report(node, 'Done') : report(node, 'Degraded', drifted));
  };

  const current = (): Node | undefined => nodes.get(nodeName);
  const sync = async (): Promise<void> => {
    const node = current();
    if (node === undefined) return;
    const desired = annotationOf(node, DESIRED_CONFIG);
    try {
      if (note.trial !== undefined) await confirm(node, note);
      else if (desired === '') return;
      else if (note.failed?.name === desired) await report(node, 'Degraded', note.failed.reason);
      else if (note.applied.name === desired) await settle(node);
      else await change(node, desired);
      failures = 0;
    } catch (error) {
      if (stopping.signal.aborted) return;
      failures += 1;
      const reason = messageOf(error);
      log.warn('machine config not applied; retrying', { config: desired, error: reason });
      retry = clock.setTimer(Math.min(RETRY_MIN_MS * 2 ** (failures - 1), RETRY_MAX_MS), wake);
      if (!isApiError(error, 'ServiceUnavailable')) await report(node, 'Degraded', reason).catch(() => {});
    }
  };
  const wake = (): void => {
    again = true;
    if (running !== undefined || stopping.signal.aborted) return;
    running = (async () => {
      while (again && !stopping.signal.aborted) {
        again = false;
        retry?.cancel();
        await sync();
      }
    })().finally(() => {
      running = undefined;
    });
  };

  return {
    async start() {
      try {
        note = noteOf(await files.open());
      } catch (error) {
        log.error('machine config not readable; this host follows none', { error: messageOf(error) });
        return;
      }
      const watch = files.watch(() => wake());
      closers.push(() => watch.close(), nodes.onChange({ added: wake, updated: () => wake() }));
      nodes.start();
    },
    async stop() {
      stopping.abort();
      for (const close of closers) close();
      for (const timer of [retry, drainTimer]) timer?.cancel();
      await running;
    },
  };
}
