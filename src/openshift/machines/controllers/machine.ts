/**
 * Reconciles machines: they claim hosts, install them and release them. The plan is made in
 * openshift/machines/core/machine.ts.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer } from '../../../client/types.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { type MachineSnapshot, planMachine, type StepFailure } from '../core/machine.ts';
import { type BareMetalHost, MACHINE_ID_ANNOTATION, type Machine } from '../kinds/machine-types.ts';
import { createMachineSteps } from './machine-steps.ts';

export const machineController: ControllerSpec = {
  name: 'machine',
  eventSource: 'machine-controller',
  reads: [resources.machines, resources.bareMetalHosts, resources.nodes, resources.pods],
  writes: [resources.machines, resources.bareMetalHosts, resources.nodes, resources.pods, resources.secrets],
  uses: ['machines'],
  prepare,
};

const WORKERS = 4;
const RETRY_MS = 5_000;
const MAX_RETRY_MS = 120_000;

function prepare(handle: ControllerHandle): ControllerRun {
  const machines = handle.informer(resources.machines);
  const hosts = handle.informer(resources.bareMetalHosts);
  const nodes = handle.informer(resources.nodes);
  const pods = handle.informer(resources.pods);
  const client = handle.writer(resources.machines);
  const provisioner = handle.use('machines');

  const { hostOf, nodeOf } = lookups(hosts, nodes);

  return (scope) => {
    if (provisioner === undefined) return;
    const steps = createMachineSteps(handle, provisioner);
    const failures = new Map<string, StepFailure>();

    const membersFor = async (machine: Machine): Promise<MachineSnapshot['members']> => {
      const roles = machine.spec?.providerSpec?.value?.roles ?? [];
      if (machine.metadata?.deletionTimestamp === undefined || !roles.includes('etcd')) return undefined;
      try {
        return await provisioner.members();
      } catch (error) {
        handle.log.warn('members of the store not read', { error: messageOf(error) });
        return 'unknown';
      }
    };

    const queue = scope.queue(async (key) => {
      const machine = machines.get(key);
      if (machine === undefined) {
        failures.delete(key);
        return;
      }
      const host = hostOf(machine);
      const node = nodeOf(machine, host);
      const nodeName = node?.metadata?.name;
      const isDeleted = machine.metadata?.deletionTimestamp !== undefined;
      const snapshot: MachineSnapshot = {
        machine,
        host,
        node,
        hosts: hosts.list(machine.metadata?.namespace ?? ''),
        pods: isDeleted && nodeName !== undefined ? pods.list().filter(({ spec }) => spec?.nodeName === nodeName) : [],
        members: await membersFor(machine),
        failure: failures.get(key),
      };
      const { status, step, againMs } = planMachine(snapshot, handle.plan().nowMs);
      const written = await writeStatus(machine, status);
      if (againMs !== undefined) queue.addAfter(key, againMs);
      if (host !== undefined) await steps.identify(written, host);
      if (step === undefined) return;
      try {
        const phase = await steps.execute(step, written, host);
        failures.delete(key);
        if (phase !== undefined) await writeStatus(written, { ...written.status, phase });
      } catch (error) {
        if (!steps.isRemote(step)) throw error;
        const attempts = (failures.get(key)?.attempts ?? 0) + 1;
        const delayMs = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (attempts - 1));
        failures.set(key, { attempts, message: messageOf(error), retryAtMs: handle.plan().nowMs + delayMs });
        handle.recorder.event(machine, 'Warning', 'FailedProvision', messageOf(error));
        // Plan again immediately, so that the error is written to a condition of the machine.
        queue.add(key);
      }
    }, WORKERS);

    const writeStatus = async (machine: Machine, status: Machine['status']): Promise<Machine> => {
      if (semanticEqual(machine.status, status)) return machine;
      let written = machine;
      await ignoreNotFound(async () => {
        written = await client.update(
          { ...machine, ...(status === undefined ? {} : { status }) },
          { subresource: 'status' },
        );
      });
      const phase = status?.phase;
      if (phase !== undefined && phase !== machine.status?.phase)
        handle.recorder.event(machine, phase === 'Failed' ? 'Warning' : 'Normal', phase, status?.errorMessage ?? '');
      return written;
    };

    const wakeConsumer = ({ metadata, spec }: BareMetalHost): void => {
      const name = spec?.consumerRef?.name;
      if (name !== undefined) queue.add(`${metadata?.namespace}/${name}`);
      else for (const each of machines.list()) if ((each.spec?.providerID ?? '') === '') queue.add(objectKey(each));
    };
    const wakeForNode = (name: string): void => {
      for (const host of hosts.list())
        if (host.metadata?.name === name && host.spec?.consumerRef !== undefined) wakeConsumer(host);
      for (const each of machines.list()) if (each.status?.nodeRef?.name === name) queue.add(objectKey(each));
    };
    scope.onChange(machines, {
      added: (machine) => queue.add(objectKey(machine)),
      updated: (machine) => queue.add(objectKey(machine)),
      deleted: (machine) => failures.delete(objectKey(machine)),
    });
    scope.onChange(hosts, {
      added: wakeConsumer,
      updated: (host, old) => {
        if (host.status?.lastUpdated === old.status?.lastUpdated || host.spec?.consumerRef === undefined)
          wakeConsumer(host);
      },
      deleted: wakeConsumer,
    });
    scope.onChange(nodes, {
      added: ({ metadata }) => wakeForNode(metadata?.name ?? ''),
      updated: (node, old) => {
        if (!semanticEqual(linkFacts(node), linkFacts(old))) wakeForNode(node.metadata?.name ?? '');
      },
      deleted: ({ metadata }) => wakeForNode(metadata?.name ?? ''),
    });
    scope.onChange(pods, {
      deleted: ({ spec }) => {
        const node = nodes.get(spec?.nodeName ?? '');
        if (node?.spec?.unschedulable === true) wakeForNode(node.metadata?.name ?? '');
      },
    });
  };
}

interface Lookups {
  hostOf(machine: Machine): BareMetalHost | undefined;
  nodeOf(machine: Machine, host: BareMetalHost | undefined): Node | undefined;
}

function lookups(hosts: Informer<BareMetalHost>, nodes: Informer<Node>): Lookups {
  const hostOf = (machine: Machine): BareMetalHost | undefined => {
    const { uid, namespace } = machine.metadata ?? {};
    return hosts.list(namespace ?? '').find(({ spec }) => spec?.consumerRef?.uid === uid);
  };
  /** Node of the machine. It has the name of the host and, if the host has reported a machine-id, also this ID. */
  const nodeOf = (machine: Machine, host: BareMetalHost | undefined): Node | undefined => {
    const { name, uid } = machine.status?.nodeRef ?? {};
    if (host === undefined) {
      const linked = name === undefined ? undefined : nodes.get(name);
      return linked?.metadata?.uid === uid ? linked : undefined;
    }
    const found = nodes.get(host.metadata?.name ?? '');
    const machineId = host.metadata?.annotations?.[MACHINE_ID_ANNOTATION];
    return machineId === undefined || found?.status?.nodeInfo?.machineID === machineId ? found : undefined;
  };
  return { hostOf, nodeOf };
}

/** Fields of a Node that affect its machine. Heartbeats are not included, so they trigger no work. */
const linkFacts = ({ metadata, spec, status }: Node): unknown => [
  metadata?.labels,
  metadata?.annotations,
  spec,
  status?.addresses,
  status?.nodeInfo?.machineID,
];
