/** Executes the steps that a change of files requires, such as restarting units. */
import {
  clusterPolicies,
  type DisruptionPolicies,
  disruptionOf,
  machineConfigDifference,
  type Step,
} from '../core/ignition/index.ts';
import type { MachineConfigDaemonOptions } from './deps.ts';
import type { AppliedConfig } from './host-record.ts';

/**
 * Executes the steps in order. Repeating them is safe. Resolves with the wall-clock time at which the kubelet was
 * restarted, or undefined if it was not restarted. `beforeReboot` is called when only the reboot remains. Throws the
 * CodedError of the first step that fails.
 */
export async function executeSteps(
  from: AppliedConfig,
  to: AppliedConfig,
  policies: DisruptionPolicies,
  options: MachineConfigDaemonOptions,
  beforeReboot: () => Promise<void> = async () => {},
): Promise<number | 'rebooting' | undefined> {
  const { changes, to: config } = machineConfigDifference(from.spec, to.spec ?? {}, options.parse);
  if (config === undefined) return undefined;
  const { steps } = disruptionOf(changes, config, clusterPolicies(policies));
  let kubeletSince: number | undefined;
  for (const step of steps) {
    options.log.info('machine config step', { ...step });
    if (step.kind === 'restart-kubelet') kubeletSince = options.clock.nowMs();
    await executeStep(step, options, beforeReboot);
    if (step.kind === 'reboot') return 'rebooting';
  }
  return kubeletSince;
}

async function executeStep(
  step: Step,
  options: MachineConfigDaemonOptions,
  beforeReboot: () => Promise<void>,
): Promise<void> {
  const { units, kernel, log } = options;
  switch (step.kind) {
    case 'restart-kubelet':
      return options.restartKubelet();
    case 'reload-images':
      return options.reloadImages();
    case 'reboot':
      await kernel.install();
      await beforeReboot();
      if (units === undefined) log.warn('no service manager; reboot this host for its kernel arguments');
      return units?.reboot();
    default:
      if (units === undefined) {
        log.warn('no service manager; units change at the next boot', { ...step });
        return undefined;
      }
      if (step.kind === 'daemon-reload') return units.daemonReload();
      if (step.kind === 'reload') return units.reload(step.unit);
      if (step.kind === 'restart') return units.restart(step.unit);
      return step.kind === 'stop' ? units.stop(step.unit) : units.tryRestart(step.unit);
  }
}
