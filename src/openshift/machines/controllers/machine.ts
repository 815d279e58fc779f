/**
 * Reconciles machines: they claim hosts, install them and release them. The plan is made in
 * openshift/machines/core/machine.ts.
 */
import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import type {
  ControllerHandle,
  ControllerRun,
  ControllerSpec,
  RunScope,
} from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { type MachineSnapshot, planMachine, type StepFailure } from '../core/machine.ts';
import { type BareMetalHost, MACHINE_ID_ANNOTATION, type Machine } from '../kinds/machine-types.ts';
import type { MachineProvisioner } from '../machines-port.ts';
import { createMachineSteps, type MachineSteps } from './machine-steps.ts';

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

interface Access {
  readonly machines: Informer<Machine>;
  readonly hosts: Informer<BareMetalHost>;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly client: ResourceClient<Machine>;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    machines: handle.informer(resources.machines),
    hosts: handle.informer(resources.bareMetalHosts),
    nodes: handle.informer(resources.nodes),
    pods: handle.informer(resources.pods),
    client: handle.writer(resources.machines),
  };
  const provisioner = handle.use('machines');
  return (scope) => {
    if (provisioner !== undefined) new MachineController(handle, access, provisioner, scope).start();
  };
}

class MachineController extends ControllerTerm {
  readonly #access: Access;
  readonly #provisioner: MachineProvisioner;
  readonly #steps: MachineSteps;
  /** Failures of remote steps since their last success, by key of the machine. */
  readonly #failures = new Map<string, StepFailure>();

  constructor(handle: ControllerHandle, access: Access, provisioner: MachineProvisioner, scope: RunScope) {
    super(handle, scope, WORKERS);
    this.#access = access;
    this.#provisioner = provisioner;
    this.#steps = createMachineSteps(handle, provisioner);
  }

  override start(): void {
    const { machines, hosts, nodes, pods } = this.#access;
    this.scope.onChange(machines, {
      added: (machine) => this.queue.add(objectKey(machine)),
      updated: (machine) => this.queue.add(objectKey(machine)),
      deleted: (machine) => this.#failures.delete(objectKey(machine)),
    });
    this.scope.onChange(hosts, {
      added: this.#wakeConsumer,
      updated: (host, old) => {
        if (host.status?.lastUpdated === old.status?.lastUpdated || host.spec?.consumerRef === undefined)
          this.#wakeConsumer(host);
      },
      deleted: this.#wakeConsumer,
    });
    this.scope.onChange(nodes, {
      added: this.#wakeForNode,
      updated: (node, old) => {
        if (!semanticEqual(linkFacts(node), linkFacts(old))) this.#wakeForNode(node);
      },
      deleted: this.#wakeForNode,
    });
    this.scope.onChange(pods, {
      deleted: ({ spec }) => {
        const node = nodes.get(spec?.nodeName ?? '');
        if (node?.spec?.unschedulable === true) this.#wakeForNode(node);
      },
    });
  }

  /** Queues the machine that uses the host. A free host wakes all machines that have no host yet. */
  readonly #wakeConsumer = ({ metadata, spec }: BareMetalHost): void => {
    const name = spec?.consumerRef?.name;
    if (name !== undefined) this.queue.add(`${metadata?.namespace}/${name}`);
    else
      for (const each of this.#access.machines.list())
        if ((each.spec?.providerID ?? '') === '') this.queue.add(objectKey(each));
  };

  readonly #wakeForNode = ({ metadata }: Node): void => {
    const name = metadata?.name ?? '';
    for (const host of this.#access.hosts.list())
      if (host.metadata?.name === name && host.spec?.consumerRef !== undefined) this.#wakeConsumer(host);
    for (const each of this.#access.machines.list())
      if (each.status?.nodeRef?.name === name) this.queue.add(objectKey(each));
  };

  protected override async sync(key: string): Promise<void> {
    const machine = this.#access.machines.get(key);
    if (machine === undefined) {
      this.#failures.delete(key);
      return;
    }
    const snapshot = await this.#snapshotOf(key, machine);
    const { host } = snapshot;
    const { status, step, againMs } = planMachine(snapshot, this.handle.plan().nowMs);
    const written = await this.#writeStatus(machine, status);
    if (againMs !== undefined) this.queue.addAfter(key, againMs);
    if (host !== undefined) await this.#steps.identify(written, host);
    if (step === undefined) return;
    try {
      const phase = await this.#steps.execute(step, written, host);
      this.#failures.delete(key);
      if (phase !== undefined) await this.#writeStatus(written, { ...written.status, phase });
    } catch (error) {
      if (!this.#steps.isRemote(step)) throw error;
      this.#onRemoteFailure(key, machine, messageOf(error));
    }
  }

  async #snapshotOf(key: string, machine: Machine): Promise<MachineSnapshot> {
    const { hosts, pods } = this.#access;
    const host = this.#hostOf(machine);
    const node = this.#nodeOf(machine, host);
    const nodeName = node?.metadata?.name;
    const isDeleted = machine.metadata?.deletionTimestamp !== undefined;
    return {
      machine,
      host,
      node,
      hosts: hosts.list(machine.metadata?.namespace ?? ''),
      pods: isDeleted && nodeName !== undefined ? pods.list().filter(({ spec }) => spec?.nodeName === nodeName) : [],
      members: await this.#membersFor(machine),
      failure: this.#failures.get(key),
    };
  }

  #hostOf({ metadata }: Machine): BareMetalHost | undefined {
    return this.#access.hosts
      .list(metadata?.namespace ?? '')
      .find(({ spec }) => spec?.consumerRef?.uid === metadata?.uid);
  }

  /** Node of the machine. It has the name of the host and, if the host has reported a machine-id, also this ID. */
  #nodeOf(machine: Machine, host: BareMetalHost | undefined): Node | undefined {
    const { nodes } = this.#access;
    const { name, uid } = machine.status?.nodeRef ?? {};
    if (host === undefined) {
      const linked = name === undefined ? undefined : nodes.get(name);
      return linked?.metadata?.uid === uid ? linked : undefined;
    }
    const found = nodes.get(host.metadata?.name ?? '');
    const machineId = host.metadata?.annotations?.[MACHINE_ID_ANNOTATION];
    return machineId === undefined || found?.status?.nodeInfo?.machineID === machineId ? found : undefined;
  }

  /** Members of the store, which are read only for the deletion of a machine with the role etcd. */
  async #membersFor(machine: Machine): Promise<MachineSnapshot['members']> {
    const roles = machine.spec?.providerSpec?.value?.roles ?? [];
    if (machine.metadata?.deletionTimestamp === undefined || !roles.includes('etcd')) return undefined;
    try {
      return await this.#provisioner.members();
    } catch (error) {
      this.handle.log.warn('members of the store not read', { error: messageOf(error) });
      return 'unknown';
    }
  }

  /** Schedules the next attempt of a remote step, with exponential back-off. */
  #onRemoteFailure(key: string, machine: Machine, message: string): void {
    const attempts = (this.#failures.get(key)?.attempts ?? 0) + 1;
    const delayMs = Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (attempts - 1));
    this.#failures.set(key, { attempts, message, retryAtMs: this.handle.plan().nowMs + delayMs });
    this.handle.recorder.event(machine, 'Warning', 'FailedProvision', message);
    // Plan again immediately, so that the error is written to a condition of the machine.
    this.queue.add(key);
  }

  async #writeStatus(machine: Machine, status: Machine['status']): Promise<Machine> {
    if (semanticEqual(machine.status, status)) return machine;
    let written = machine;
    await ignoreNotFound(async () => {
      const changed = { ...machine, ...(status === undefined ? {} : { status }) };
      written = await this.#access.client.update(changed, { subresource: 'status' });
    });
    const phase = status?.phase;
    if (phase !== undefined && phase !== machine.status?.phase) {
      const type = phase === 'Failed' ? 'Warning' : 'Normal';
      this.handle.recorder.event(machine, type, phase, status?.errorMessage ?? '');
    }
    return written;
  }
}

/** Fields of a Node that affect its machine. Heartbeats are not included, so they trigger no work. */
const linkFacts = ({ metadata, spec, status }: Node): unknown => [
  metadata?.labels,
  metadata?.annotations,
  spec,
  status?.addresses,
  status?.nodeInfo?.machineID,
];
