/** Maintains the number of machines of each MachineSet. The plan is made in openshift/machines/core/machine-set.ts. */

import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { controllerOf, controllerReference } from '../../../controllers/framework/core/ownership.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { planMachineSet } from '../core/machine-set.ts';
import { MACHINE_GROUP, MACHINE_VERSION, type Machine, type MachineSet } from '../kinds/machine-types.ts';

export const machineSetController: ControllerSpec = {
  name: 'machineset',
  eventSource: 'machineset-controller',
  reads: [resources.machineSets, resources.machines, resources.nodes],
  writes: [resources.machineSets, resources.machines],
  prepare,
};

const KIND = { group: MACHINE_GROUP, version: MACHINE_VERSION, kind: 'MachineSet' };
const WORKERS = 1;

function prepare(handle: ControllerHandle): ControllerRun {
  const sets = handle.informer(resources.machineSets);
  const machines = handle.informer(resources.machines);
  const nodes = handle.informer(resources.nodes);
  const setClient = handle.writer(resources.machineSets);
  const client = handle.writer(resources.machines);

  const create = (set: MachineSet): Promise<Machine> => {
    const { name = '', namespace } = set.metadata ?? {};
    const { metadata, spec } = set.spec?.template ?? {};
    return client.create({
      metadata: {
        generateName: `${name}-`,
        ...(namespace === undefined ? {} : { namespace }),
        ...(metadata?.labels === undefined ? {} : { labels: metadata.labels }),
        ...(metadata?.annotations === undefined ? {} : { annotations: metadata.annotations }),
        ownerReferences: [controllerReference(set, KIND)],
      },
      ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
    });
  };
  const patchOwners = (machine: Machine, ownerReferences: readonly object[]): Promise<void> => {
    const { name = '', namespace, uid, resourceVersion } = machine.metadata ?? {};
    const patch = { metadata: { uid, resourceVersion, ownerReferences } };
    return ignoreNotFound(() => client.patch(name, namespace, 'merge', patch));
  };

  return (scope) => {
    const queue = scope.queue(async (key) => {
      const set = sets.get(key);
      if (set === undefined) return;
      const context = handle.plan();
      const namespace = set.metadata?.namespace ?? '';
      const node = (name: string) => nodes.get(name);
      let plan = planMachineSet({ set, machines: machines.list(namespace), node }, context);
      // If machines are to be created or deleted, plan again with machines listed from the server, because each new
      // machine claims a host. The list is short.
      if (plan.create > 0 || plan.delete.length > 0) {
        const { items } = await client.list({ namespace });
        plan = planMachineSet({ set, machines: items, node }, context);
      }
      const without = (machine: Machine): object[] =>
        (machine.metadata?.ownerReferences ?? []).filter(({ uid }) => uid !== set.metadata?.uid);
      for (const each of plan.adopt) await patchOwners(each, [...without(each), controllerReference(set, KIND)]);
      for (const each of plan.release) await patchOwners(each, without(each));
      for (let made = 0; made < plan.create; made += 1) {
        const { metadata } = await create(set);
        handle.recorder.event(set, 'Normal', 'SuccessfulCreate', `Created machine ${metadata?.name}`);
      }
      for (const { metadata } of plan.delete) {
        await ignoreNotFound(() => client.delete(metadata?.name ?? '', namespace));
        handle.recorder.event(set, 'Normal', 'SuccessfulDelete', `Deleted machine ${metadata?.name}`);
      }
      if (plan.nextMs !== undefined) queue.addAfter(key, Math.max(0, plan.nextMs - context.nowMs));
      if (!semanticEqual(plan.status, set.status))
        await ignoreNotFound(() => setClient.update({ ...set, status: plan.status }, { subresource: 'status' }));
    }, WORKERS);

    const wakeOwner = (machine: Machine): void => {
      const owner = controllerOf(machine);
      if (owner?.kind === 'MachineSet') queue.add(`${machine.metadata?.namespace}/${owner.name}`);
      else if (owner === undefined) for (const set of sets.list()) queue.add(objectKey(set));
    };
    scope.onChange(sets, {
      added: (set) => queue.add(objectKey(set)),
      updated: (set) => queue.add(objectKey(set)),
    });
    scope.onChange(machines, {
      added: wakeOwner,
      updated: (machine, old) => {
        if (controllerOf(machine)?.uid !== controllerOf(old)?.uid) wakeOwner(old);
        wakeOwner(machine);
      },
      deleted: wakeOwner,
    });
    scope.onChange(nodes, {
      updated: (node, old) => {
        const state = ({ status }: typeof node) => status?.conditions?.find(({ type }) => type === 'Ready')?.status;
        if (state(node) === state(old)) return;
        for (const each of machines.list()) if (each.status?.nodeRef?.name === node.metadata?.name) wakeOwner(each);
      },
    });
  };
}
