/** Executes the steps of a machine's plan on objects of the cluster and on its host. */

import { resources } from '../../../api/resources.ts';
import type { ControllerHandle } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { isOffered } from '../core/bare-metal-host.ts';
import type { MachineStep } from '../core/machine.ts';
import {
  type BareMetalHost,
  HOST_ANNOTATION,
  MACHINE_FINALIZER,
  type Machine,
  type MachinePhase,
} from '../kinds/machine-types.ts';
import type { MachineProvisioner } from '../machines-port.ts';
import { createHostSteps } from './machine-host-steps.ts';
import { createNodeSteps } from './machine-node-steps.ts';

export interface MachineSteps {
  /** Writes the provider ID and the name of the claimed host into the machine. */
  identify(machine: Machine, host: BareMetalHost): Promise<void>;
  /** Executes a step. Resolves with the machine's new phase if the phase changes immediately. */
  execute(step: MachineStep, machine: Machine, host: BareMetalHost | undefined): Promise<MachinePhase | undefined>;
  /** Whether the step connects to the host over SSH. The controller counts failures of such steps. */
  isRemote(step: MachineStep): boolean;
}

export function createMachineSteps(handle: ControllerHandle, provisioner: MachineProvisioner): MachineSteps {
  const machines = handle.writer(resources.machines);
  const onHost = createHostSteps(handle, provisioner);
  const onNode = createNodeSteps(handle);

  const finalize = async (machine: Machine): Promise<void> => {
    const finalizers = (machine.metadata?.finalizers ?? []).filter((each) => each !== MACHINE_FINALIZER);
    await ignoreNotFound(() => machines.update({ ...machine, metadata: { ...machine.metadata, finalizers } }));
  };

  const execute = async (
    step: MachineStep,
    machine: Machine,
    host: BareMetalHost | undefined,
  ): Promise<MachinePhase | undefined> => {
    switch (step.do) {
      case 'claim':
        await onHost.claim(step.host, machine);
        return undefined;
      case 'provision':
        return onHost.provision(step.host, machine);
      case 'link':
        await onNode.link(step.node, machine, host);
        if (host !== undefined) await onHost.withdraw(host);
        return undefined;
      case 'cordon':
        await onNode.cordon(step.node);
        return undefined;
      case 'evict':
        await onNode.evict(step.pods);
        return undefined;
      case 'wipe':
        await onHost.wipe(step.host);
        return undefined;
      case 'removeMember':
        await provisioner.removeMember(step.name);
        return undefined;
      case 'deleteNode':
        await onNode.remove(step.node);
        return undefined;
      case 'release':
        await onHost.release(step.host);
        return undefined;
      case 'finalize':
        await finalize(machine);
        return undefined;
    }
  };

  return {
    execute,
    isRemote: (step) => (step.do === 'provision' || step.do === 'wipe') && !isOffered(step.host),
    identify: async ({ metadata, spec }, host) => {
      const at = `${host.metadata?.namespace}/${host.metadata?.name}`;
      const providerID = `baremetalhost:///${at}/${host.metadata?.uid}`;
      if (spec?.providerID === providerID && metadata?.annotations?.[HOST_ANNOTATION] === at) return;
      const patch = { metadata: { annotations: { [HOST_ANNOTATION]: at } }, spec: { providerID } };
      await ignoreNotFound(() => machines.patch(metadata?.name ?? '', metadata?.namespace, 'merge', patch));
    },
  };
}
