/**
 * CPU, memory and topology managers: assign CPUs and NUMA nodes to containers. A pod's share is assigned at admission
 * and kept until the pod has ended. Source: KEP-3570 (CPU manager), KEP-1769 (memory manager), KEP-693 (topology
 * manager).
 */
import { join } from 'node:path';
import type { Container, Pod } from '../../api/generated/core/v1.ts';
import { toUid, type Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import { formatCpuSet, parseCpuSet } from '../../base/linux/cpuset.ts';
import type { Log } from '../../base/log.ts';
import { exclusiveCpus } from '../core/cgroups/exclusive.ts';
import { amountOf, qosClassOf } from '../core/cgroups/resources.ts';
import { takeCpus } from '../core/topology/assignment.ts';
import { freeOf, type MemoryBlock, type MemoryNode, mayGroup, sumIn } from '../core/topology/blocks.ts';
import { decideTopology, hintsFor, inMask, type TopologyHint } from '../core/topology/hints.ts';
import type { Rejection } from '../pods/admission.ts';
import type { MachineTopology } from '../port.ts';
import { type Entries, readCpuState, readMemoryState, writeCpuState, writeMemoryState } from './checkpoint.ts';
import type { ResourcePolicies } from './policies.ts';

/** Allowed CPUs and NUMA nodes in cpuset(7) format. A field is undefined if there is no restriction. */
export interface Placement {
  readonly cpus: string | undefined;
  readonly mems: string | undefined;
}

export interface CheckpointFiles {
  /** Returns '' when the file does not exist. */
  read(path: string): Promise<string>;
  replace(path: string, content: string): Promise<void>;
}

export interface ContainerManagerOptions {
  readonly policies: ResourcePolicies;
  readonly machine: MachineTopology;
  /** Millicores reserved from pods. Determines the number of reserved CPUs when no list is given. */
  readonly reservedMilli: number;
  readonly directory: string;
  readonly files: CheckpointFiles;
  readonly log: Log;
  /** Called when the set of shared CPUs changes. */
  readonly onChanged: () => void;
}

const CPU_STATE = 'cpu_manager_state';
const MEMORY_STATE = 'memory_manager_state';
const UNEXPECTED = 'UnexpectedAdmissionError';
const TOPOLOGY: Rejection = {
  reason: 'TopologyAffinityError',
  message: 'Resources cannot be allocated with Topology locality',
};

/** Shortage that becomes the rejection of a pod. */
class Shortage extends Error {}

export class ContainerManager {
  readonly #options: ContainerManagerOptions;
  readonly #nodes: readonly number[];
  readonly #memory: readonly MemoryNode[];
  readonly #reserved: ReadonlySet<number>;
  #cpus: Entries<readonly number[]> = new Map();
  #blocks: Entries<readonly MemoryBlock[]> = new Map();
  #saving: Promise<void> = Promise.resolve();

  /** Throws an Error when the static policy has no reserved CPU, or a reserved CPU does not exist. */
  constructor(options: ContainerManagerOptions) {
    this.#options = options;
    const { machine, policies } = options;
    this.#nodes = [...new Set(machine.cpus.map(({ numa }) => numa))].sort((a, b) => a - b);
    this.#memory = machine.memory.map(({ numa, resources }) => {
      const memory = Math.max(0, (resources['memory'] ?? 0) - (policies.reservedMemory.get(numa) ?? 0));
      return { id: numa, allocatable: { ...resources, memory } };
    });
    this.#reserved = new Set(this.#static ? reservedCpus(options) : []);
  }

  get #static(): boolean {
    return this.#options.policies.cpuManager === 'static';
  }

  get #pinned(): boolean {
    return this.#options.policies.memoryManager === 'Static';
  }

  /** Whether a policy can restrict any container. */
  get enabled(): boolean {
    return this.#static || this.#pinned;
  }

  /**
   * Reads the checkpoints. A checkpoint that is unreadable or of another policy is ignored with a warning and
   * overwritten.
   */
  async start(): Promise<void> {
    if (this.#static) this.#cpus = (await this.#load(CPU_STATE, 'static', readCpuState)) ?? new Map();
    if (this.#pinned) this.#blocks = (await this.#load(MEMORY_STATE, 'Static', readMemoryState)) ?? new Map();
    if (this.enabled) await this.#save();
  }

  async #load<T>(
    name: string,
    policy: string,
    parse: (text: string) => { readonly policyName: string; readonly entries: Entries<T> },
  ): Promise<Entries<T> | undefined> {
    const { directory, files, log } = this.#options;
    const text = await files.read(join(directory, name));
    if (text === '') return undefined;
    try {
      const { policyName, entries } = parse(text);
      if (policyName === policy) return entries;
      log.warn('checkpoint is of another policy; starting without it', { file: name, policy: policyName });
    } catch (error) {
      log.warn('checkpoint cannot be read; starting without it', { file: name, error: messageOf(error) });
    }
    return undefined;
  }

  /**
   * Assigns exclusive resources to the pod's containers. Returns undefined on success. A pod that already has a share
   * keeps it.
   */
  admit(pod: Pod): Rejection | undefined {
    const uid = toUid(pod.metadata?.uid);
    if (!this.enabled || this.#cpus.has(uid) || this.#blocks.has(uid)) return undefined;
    const share: Share = { cpus: new Map(), blocks: new Map(), reusable: new Set() };
    const init = pod.spec?.initContainers ?? [];
    const all = [...init, ...(pod.spec?.containers ?? [])];
    try {
      const podHint =
        this.#options.policies.topologyScope === 'pod'
          ? this.#hintOf(
              all.map((each) => exclusiveRequest(pod, each)),
              share,
            )
          : undefined;
      for (const container of all) {
        const wanted = exclusiveRequest(pod, container);
        const hint = podHint ?? this.#hintOf([wanted], share);
        const passing = init.includes(container) && container.restartPolicy !== 'Always';
        this.#take(share, container.name, wanted, hint?.nodes, passing);
      }
    } catch (error) {
      if (!(error instanceof Shortage)) throw error;
      return error.message === '' ? TOPOLOGY : { reason: UNEXPECTED, message: error.message };
    }
    if (share.cpus.size > 0) this.#cpus.set(uid, share.cpus);
    if (share.blocks.size > 0) this.#blocks.set(uid, share.blocks);
    if (share.cpus.size > 0 || share.blocks.size > 0) this.#changed();
    return undefined;
  }

  release(uid: Uid): void {
    const had = [this.#cpus.delete(uid), this.#blocks.delete(uid)];
    if (had.includes(true)) this.#changed();
  }

  /** Releases the shares of pods that are not in `uids`. */
  retain(uids: ReadonlySet<Uid>): void {
    for (const uid of [...this.#cpus.keys(), ...this.#blocks.keys()]) if (!uids.has(uid)) this.release(uid);
  }

  placementOf(uid: Uid, container: string): Placement {
    const own = this.#cpus.get(uid)?.get(container);
    const nodes = this.#blocks
      .get(uid)
      ?.get(container)
      ?.flatMap(({ numaAffinity }) => numaAffinity);
    return {
      cpus: this.#static ? formatCpuSet(own ?? this.#shared()) : undefined,
      mems: nodes === undefined ? undefined : formatCpuSet(nodes),
    };
  }

  /** Reason why the pod cannot be resized in place. Undefined when it can. Source: pkg/kubelet/allocation. */
  resizeProblem(pod: Pod): string | undefined {
    if (this.#static && qosClassOf(pod) === 'Guaranteed')
      return 'Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy';
    if (this.#pinned && qosClassOf(pod) === 'Guaranteed')
      return 'Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy';
    return undefined;
  }

  #shared(excluded?: Share): number[] {
    const assigned = new Set([...this.#cpus.values()].flatMap((containers) => [...containers.values()].flat()));
    for (const cpus of excluded?.cpus.values() ?? []) for (const cpu of cpus) assigned.add(cpu);
    return this.#options.machine.cpus.map(({ id }) => id).filter((id) => !assigned.has(id));
  }

  /** CPUs that a container may use exclusively. */
  #available(share: Share): Set<number> {
    const free = this.#shared(share).filter((id) => !this.#reserved.has(id));
    return new Set([...free, ...share.reusable]);
  }

  #usedBlocks(share: Share): MemoryBlock[] {
    const others = [...this.#blocks.values()].flatMap((containers) => [...containers.values()].flat());
    return [...others, ...[...share.blocks.values()].flat()];
  }

  #hintOf(requested: readonly ExclusiveRequest[], share: Share): TopologyHint | undefined {
    const { policies } = this.#options;
    const cpus = this.#static ? requested.reduce((sum, each) => sum + each.cpus, 0) : 0;
    const hints: (readonly TopologyHint[] | undefined)[] = [cpus > 0 ? this.#cpuHints(cpus, share) : undefined];
    const types = this.#pinned ? new Set(requested.flatMap(({ memory }) => [...memory.keys()])) : new Set<string>();
    for (const type of types) {
      const bytes = requested.reduce((sum, { memory }) => sum + (memory.get(type) ?? 0), 0);
      hints.push(this.#memoryHints(type, bytes, share));
    }
    const { admitted, hint } = decideTopology(policies.topologyManager, this.#nodes, hints);
    if (!admitted) throw new Shortage('');
    return hint;
  }

  #cpuHints(count: number, share: Share): readonly TopologyHint[] {
    const { cpus } = this.#options.machine;
    const available = this.#available(share);
    const within = (mask: number): typeof cpus => cpus.filter(({ numa }) => inMask(mask, numa));
    return hintsFor(
      this.#nodes,
      count,
      (mask) => within(mask).filter(({ id }) => !this.#reserved.has(id)).length,
      (mask) => within(mask).filter(({ id }) => available.has(id)).length,
    );
  }

  #memoryHints(type: string, bytes: number, share: Share): readonly TopologyHint[] {
    const used = this.#usedBlocks(share);
    const free = freeOf(this.#memory, type, used);
    const total = new Map(this.#memory.map(({ id, allocatable }) => [id, allocatable[type] ?? 0]));
    return hintsFor(
      this.#memory.map(({ id }) => id),
      bytes,
      (mask) => sumIn(total, mask),
      (mask) => (mayGroup(mask, this.#memory, used) ? sumIn(free, mask) : 0),
    );
  }

  #take(share: Share, name: string, wanted: ExclusiveRequest, mask: number | undefined, passing: boolean): void {
    if (this.#static && wanted.cpus > 0) {
      const assigned = this.#takeCpus(share, wanted.cpus, mask);
      share.cpus.set(name, assigned);
      // CPUs of an init container are reusable by the containers that run after it.
      for (const cpu of assigned) {
        if (passing) share.reusable.add(cpu);
        else share.reusable.delete(cpu);
      }
    }
    if (!this.#pinned || wanted.memory.size === 0) return;
    const blocks: MemoryBlock[] = [];
    for (const [type, size] of wanted.memory) {
      const hints = this.#memoryHints(type, size, share);
      const hint =
        hints.find(({ nodes }) => nodes === mask) ??
        hints.toSorted((a, b) => Number(b.preferred) - Number(a.preferred))[0];
      if (hint === undefined) {
        throw new Shortage(
          'Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, which is unexpected',
        );
      }
      const numaAffinity = this.#memory.map(({ id }) => id).filter((id) => inMask(hint.nodes, id));
      blocks.push({ numaAffinity, type, size });
    }
    // An init container releases its memory before the next container starts.
    if (!passing) share.blocks.set(name, blocks);
  }

  #takeCpus(share: Share, count: number, mask: number | undefined): readonly number[] {
    const { cpus } = this.#options.machine;
    const available = this.#available(share);
    const aligned = cpus.filter(({ id, numa }) => available.has(id) && (mask === undefined || inMask(mask, numa)));
    const steps = [
      [...share.reusable].filter((id) => aligned.some((cpu) => cpu.id === id)),
      aligned.map(({ id }) => id),
      [...available],
    ];
    const assigned = new Set<number>();
    for (const step of steps) {
      const left = new Set(step.filter((id) => !assigned.has(id)));
      for (const id of takeCpus(cpus, left, Math.min(left.size, count - assigned.size)) ?? []) assigned.add(id);
    }
    if (assigned.size < count) {
      throw new Shortage(
        `Allocate failed due to not enough cpus available to satisfy request: requested=${count}, available=${available.size}, which is unexpected`,
      );
    }
    return [...assigned].sort((a, b) => a - b);
  }

  #changed(): void {
    this.#saving = this.#saving
      .then(() => this.#save())
      .catch((error: unknown) => this.#options.log.warn('checkpoint not written', { error: messageOf(error) }));
    this.#options.onChanged();
  }

  async #save(): Promise<void> {
    const { directory, files } = this.#options;
    if (this.#static)
      await files.replace(join(directory, CPU_STATE), writeCpuState('static', this.#shared(), this.#cpus));
    if (this.#pinned) await files.replace(join(directory, MEMORY_STATE), writeMemoryState('Static', this.#blocks));
  }
}

interface ExclusiveRequest {
  readonly cpus: number;
  readonly memory: ReadonlyMap<string, number>;
}

interface Share {
  readonly cpus: Map<string, readonly number[]>;
  readonly blocks: Map<string, readonly MemoryBlock[]>;
  /** CPUs of init containers that have ended when the next container starts. */
  readonly reusable: Set<number>;
}

function exclusiveRequest(pod: Pod, container: Container): ExclusiveRequest {
  const memory = new Map<string, number>();
  if (qosClassOf(pod) === 'Guaranteed') {
    const names = Object.keys(container.resources?.limits ?? {});
    for (const name of names.filter((each) => each === 'memory' || each.startsWith('hugepages-'))) {
      const bytes = amountOf(container, 'requests', name);
      if (bytes > 0) memory.set(name, bytes);
    }
  }
  return { cpus: exclusiveCpus(pod, container), memory };
}

function reservedCpus({ machine, policies, reservedMilli }: ContainerManagerOptions): readonly number[] {
  const all = new Set(machine.cpus.map(({ id }) => id));
  if (policies.reservedCpus !== '') {
    const given = parseCpuSet(policies.reservedCpus);
    const unknown = given.find((id) => !all.has(id));
    if (unknown !== undefined)
      throw new Error(`reserved-cpus: this host has no CPU ${unknown}; it has ${formatCpuSet(all)}`);
    return given;
  }
  const count = Math.ceil(reservedMilli / 1000);
  const assigned = takeCpus(machine.cpus, all, count);
  if (count === 0 || assigned === undefined) {
    throw new Error(
      'cpu-manager-policy: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero; set reserved-cpus',
    );
  }
  return assigned;
}
