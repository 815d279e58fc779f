/** Maintains the number of machines of each MachineSet. The plan is made in openshift/machines/core/machine-set.ts. */

import type { Node } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { omitUndefined } from '../../../base/json/omit-fields.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import { controllerOf, controllerReference } from '../../../controllers/framework/core/ownership.ts';
import type { PlanContext } from '../../../controllers/framework/core/plan-context.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { type MachineSetPlan, planMachineSet } from '../core/machine-set.ts';
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
  const access: Access = {
    sets: handle.informer(resources.machineSets),
    machines: handle.informer(resources.machines),
    nodes: handle.informer(resources.nodes),
    setClient: handle.writer(resources.machineSets),
    client: handle.writer(resources.machines),
  };
  return (scope) => new MachineSetController(handle, scope, access).start();
}

interface Access {
  readonly sets: Informer<MachineSet>;
  readonly machines: Informer<Machine>;
  readonly nodes: Informer<Node>;
  readonly setClient: ResourceClient<MachineSet>;
  readonly client: ResourceClient<Machine>;
}

class MachineSetController extends ControllerTerm {
  readonly #access: Access;

  constructor(handle: ControllerHandle, scope: RunScope, access: Access) {
    super(handle, scope, WORKERS);
    this.#access = access;
  }

  override start(): void {
    const { sets, machines, nodes } = this.#access;
    const wake = (set: MachineSet): void => this.queue.add(objectKey(set));
    const wakeOwner = (machine: Machine): void => {
      const owner = controllerOf(machine);
      if (owner?.kind === 'MachineSet') this.queue.add(`${machine.metadata?.namespace}/${owner.name}`);
      else if (owner === undefined) for (const set of sets.list()) wake(set);
    };
    this.scope.onChange(sets, { added: wake, updated: wake });
    this.scope.onChange(machines, {
      added: wakeOwner,
      updated: (machine, old) => {
        if (controllerOf(machine)?.uid !== controllerOf(old)?.uid) wakeOwner(old);
        wakeOwner(machine);
      },
      deleted: wakeOwner,
    });
    this.scope.onChange(nodes, {
      updated: (node, old) => {
        if (readyStatus(node) === readyStatus(old)) return;
        for (const each of machines.list()) if (each.status?.nodeRef?.name === node.metadata?.name) wakeOwner(each);
      },
    });
  }

  protected override async sync(key: string): Promise<void> {
    const set = this.#access.sets.get(key);
    if (set === undefined) return;
    const context = this.handle.plan();
    const plan = await this.#plan(set, context);
    await this.#writeOwners(set, plan);
    await this.#scale(set, plan);
    if (plan.nextMs !== undefined) this.queue.addAfter(key, Math.max(0, plan.nextMs - context.nowMs));
    if (semanticEqual(plan.status, set.status)) return;
    const updated = { ...set, status: plan.status };
    await ignoreNotFound(() => this.#access.setClient.update(updated, { subresource: 'status' }));
  }

  async #plan(set: MachineSet, context: PlanContext): Promise<MachineSetPlan> {
    const { machines, nodes, client } = this.#access;
    const namespace = set.metadata?.namespace ?? '';
    const node = (name: string) => nodes.get(name);
    const plan = planMachineSet({ set, machines: machines.list(namespace), node }, context);
    if (plan.create === 0 && plan.delete.length === 0) return plan;
    // If machines are to be created or deleted, plan again with machines listed from the server, because each new
    // machine claims a host. The list is short.
    const { items } = await client.list({ namespace });
    return planMachineSet({ set, machines: items, node }, context);
  }

  async #writeOwners(set: MachineSet, plan: MachineSetPlan): Promise<void> {
    const otherOwners = (machine: Machine): object[] =>
      (machine.metadata?.ownerReferences ?? []).filter(({ uid }) => uid !== set.metadata?.uid);
    for (const each of plan.adopt)
      await this.#patchOwners(each, [...otherOwners(each), controllerReference(set, KIND)]);
    for (const each of plan.release) await this.#patchOwners(each, otherOwners(each));
  }

  async #patchOwners(machine: Machine, ownerReferences: readonly object[]): Promise<void> {
    const { name = '', namespace, uid, resourceVersion } = machine.metadata ?? {};
    const patch = { metadata: { uid, resourceVersion, ownerReferences } };
    await ignoreNotFound(() => this.#access.client.patch(name, namespace, 'merge', patch));
  }

  async #scale(set: MachineSet, plan: MachineSetPlan): Promise<void> {
    const { client } = this.#access;
    const { recorder } = this.handle;
    for (let made = 0; made < plan.create; made += 1) {
      const { metadata } = await client.create(newMachine(set));
      recorder.event(set, 'Normal', 'SuccessfulCreate', `Created machine ${metadata?.name}`);
    }
    for (const { metadata } of plan.delete) {
      await ignoreNotFound(() => client.delete(metadata?.name ?? '', set.metadata?.namespace ?? ''));
      recorder.event(set, 'Normal', 'SuccessfulDelete', `Deleted machine ${metadata?.name}`);
    }
  }
}

function newMachine(set: MachineSet): Machine {
  const { name = '', namespace } = set.metadata ?? {};
  const { metadata, spec } = set.spec?.template ?? {};
  return {
    metadata: omitUndefined({
      generateName: `${name}-`,
      namespace,
      labels: metadata?.labels,
      annotations: metadata?.annotations,
      ownerReferences: [controllerReference(set, KIND)],
    }),
    ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
  };
}

const readyStatus = ({ status }: Node): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.status;
