/**
 * Plans the packet filter of one node from the cluster's network policies. A pod that policies select is isolated: for
 * each direction, a verdict map leads from the pod's addresses to a chain. The chain jumps to the chains of the pod's
 * policies and drops the packets that no policy accepts. Pods with the same policies share one chain. Peers are sets of
 * addresses, so a new pod adds elements and no rules. Source: networking.k8s.io/v1, "Network Policies" of the
 * Kubernetes documentation.
 */

import type { NetworkPolicy } from '../../../api/generated/networking/v1.ts';
import { MAX_MEMBERS, MAX_POLICIES, MAX_POLICY_SIZE } from '../../../api/kinds/network/networkpolicies/size.ts';
import { jsonEqual } from '../../../api/meta/equality.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import { type Labels, matchesLabels } from '../../../base/selector.ts';
import { type CompiledPolicy, canonicalAddresses, compilePolicy, type Direction, type PolicyPod } from './compile.ts';
import { ElementSet } from './element-set.ts';
import { Memberships, type TrackedSelection } from './memberships.ts';
import { ruleSteps } from './nft-rules.ts';
import { type PolicyTable, policyProgram, replaceTable } from './program.ts';

export interface PlannerOptions {
  readonly table: string;
  readonly nodeName: string;
}

/** Policies that permit traffic of a pod, by direction. Undefined: the pod is not isolated in this direction. */
type Isolation = Readonly<Record<Direction, readonly CompiledPolicy[] | undefined>>;

interface Rules {
  readonly made: readonly string[];
  readonly uses: ReadonlySet<TrackedSelection>;
}

interface LocalPod {
  readonly namespace: string;
  readonly ips: readonly string[];
  readonly isolation: Isolation;
}

/** Policies of a namespace, sorted by key. */
interface Selectors {
  /** Policies with rules, by direction. */
  readonly permitting: Readonly<Record<Direction, readonly CompiledPolicy[]>>;
  /** Policies that isolate pods and permit nothing, by direction. */
  readonly denying: Readonly<Record<Direction, readonly CompiledPolicy[]>>;
  /** Isolation by the labels of a pod, because pods of one workload have the same labels. */
  readonly byLabels: BoundedMap<string, Isolation>;
}

/** Sets that the policies of a namespace use, and the number of their elements. */
interface Usage {
  readonly sets: Set<TrackedSelection>;
  size: number;
}

/** A chain that has no rules, because the sets of its policy would be too large. */
interface Crowded {
  readonly policy: string;
  /** Number of pods of the cluster when the sets were too large. */
  readonly pods: number;
}

const DIRECTIONS: readonly Direction[] = ['ingress', 'egress'];
const FREE: Isolation = { ingress: undefined, egress: undefined };
const NONE: readonly CompiledPolicy[] = [];
const NO_RULES: readonly string[] = [];
/** Number of elements by which all sets may grow before the limit of each namespace is checked again. */
const MAX_GROWTH = 50_000;
/** Maximum number of label sets of a namespace for which the isolation is cached. */
const MAX_KEPT = 1000;

/**
 * Keeps the desired state and creates the nft programs. A planner must not be used concurrently. Programs never contain
 * text from users: names are replaced by numbers.
 */
export class PolicyPlanner {
  readonly #options: PlannerOptions;
  readonly #policies = new Map<string, CompiledPolicy>();
  readonly #policiesByNamespace = new Map<string, Map<string, CompiledPolicy>>();
  readonly #namespaces = new Map<string, Labels>();
  /** Pods as the API reports them. */
  readonly #pods = new Map<string, PolicyPod>();
  /** Addresses that this node assigned to pods, by pod key. They are known before the API reports them. */
  readonly #attached = new Map<string, readonly string[]>();
  readonly #memberships = new Memberships(this.#pods, this.#namespaces);
  readonly #local = new Map<string, LocalPod>();
  /** Keys of local pods by address. Two pods can have the same address while it is being reassigned. */
  readonly #owners = new Map<string, Set<string>>();
  readonly #maps: PolicyTable['maps'] = {
    ingress4: new ElementSet(),
    ingress6: new ElementSet(),
    egress4: new ElementSet(),
    egress6: new ElementSet(),
    self4: new ElementSet(),
    self6: new ElementSet(),
  };
  /** Elements of `#maps` by address. */
  readonly #elements = new Map<string, readonly (readonly [ElementSet, string])[]>();
  readonly #rules: Readonly<Record<Direction, WeakMap<CompiledPolicy, Rules>>> = {
    ingress: new WeakMap(),
    egress: new WeakMap(),
  };
  /** Keys of policies without rules, by namespace, because all policies of the namespace together exceed the limit. */
  readonly #oversized = new Map<string, readonly string[]>();
  /** Chains without rules because of the size of their sets, by namespace and chain. */
  #crowded = new Map<string, Map<string, Crowded>>();
  readonly #selectors = new Map<string, Selectors>();
  /** Namespaces whose policies have changed since the isolation of their pods was computed. */
  readonly #changed = new Set<string>();
  /** Names of groups by their list of policies, which is compared by identity. A group is a chain that pods share. */
  #groups = newGroups();
  readonly #names = new Map<string, string>();
  #numbers = 0;
  #structureChanged = true;
  /** Number of elements of all sets when the limit of each namespace was checked last. */
  #checkedSize = 0;
  #chains: ReadonlyMap<string, readonly string[]> = new Map();
  #applied: { chains: PolicyTable['chains']; sets: ReadonlySet<string> } | undefined;

  constructor(options: PlannerOptions) {
    this.#options = options;
  }

  setPolicy(policy: NetworkPolicy): void {
    const compiled = compilePolicy(policy);
    this.#policies.set(compiled.key, compiled);
    const ofNamespace = this.#policiesByNamespace.get(compiled.namespace) ?? new Map();
    this.#policiesByNamespace.set(compiled.namespace, ofNamespace.set(compiled.key, compiled));
    this.#policiesChanged(compiled.namespace);
  }

  deletePolicy(key: string): void {
    const old = this.#policies.get(key);
    if (old === undefined) return;
    this.#policies.delete(key);
    this.#policiesByNamespace.get(old.namespace)?.delete(key);
    this.#policiesChanged(old.namespace);
  }

  setNamespace(name: string, labels: Labels): void {
    this.#namespaces.set(name, labels);
    this.#memberships.namespaceChanged(name);
  }

  deleteNamespace(name: string): void {
    this.#namespaces.delete(name);
    this.#memberships.namespaceChanged(name);
  }

  setPod(pod: PolicyPod): void {
    // Most updates of a pod change fields that policies do not use.
    if (jsonEqual(pod, this.#pods.get(pod.key))) return;
    this.#pods.set(pod.key, pod);
    this.#podChanged(pod.key, pod.namespace);
  }

  deletePod(key: string): void {
    const old = this.#pods.get(key);
    if (old === undefined) return;
    this.#pods.delete(key);
    this.#podChanged(key, old.namespace);
  }

  /** Records the addresses of a pod on this node. The API may not have reported them yet. */
  attach(namespace: string, name: string, ips: readonly string[]): void {
    this.#attached.set(`${namespace}/${name}`, canonicalAddresses(ips));
    this.#podChanged(`${namespace}/${name}`, namespace);
  }

  detach(namespace: string, name: string): void {
    if (this.#attached.delete(`${namespace}/${name}`)) this.#podChanged(`${namespace}/${name}`, namespace);
  }

  get policies(): number {
    return this.#policies.size;
  }

  /** Policies that isolate pods but permit nothing, because the policies of their namespace are too large. */
  get oversized(): ReadonlySet<string> {
    this.#placeChanged();
    const crowded = [...this.#crowded.values()].flatMap((chains) => [...chains.values()].map(({ policy }) => policy));
    return new Set([...this.#oversized.values(), crowded].flat());
  }

  /** Whether rules of this node apply to the pod. */
  isIsolated(namespace: string, name: string): boolean {
    this.#placeChanged();
    const isolation = this.#local.get(`${namespace}/${name}`)?.isolation ?? FREE;
    return isolation !== FREE;
  }

  /** Makes the next program replace the whole table. */
  reset(): void {
    this.#applied = undefined;
  }

  program(): string {
    return atOnce(this.programSteps());
  }

  /**
   * Returns the program that updates the table from the state after the last program; '' if nothing differs. The
   * program is recorded as applied. No other method may be called before the last step.
   */
  *programSteps(): Steps<string> {
    this.#placeChanged();
    yield* this.#updateSets();
    const sets = this.#memberships.sets();
    const desired: PolicyTable = { name: this.#options.table, chains: this.#chains, maps: this.#maps, sets };
    const applied = this.#applied;
    if (applied === undefined) {
      for (const { content } of sets) {
        content.reset();
        yield;
      }
      for (const content of Object.values(this.#maps)) content.reset();
    }
    const text = yield* applied === undefined ? replaceTable(desired) : policyProgram(applied, desired);
    this.#applied = { chains: this.#chains, sets: new Set(sets.map(({ name }) => name)) };
    return text;
  }

  /** Records changed policies. Pods are placed later, once for all changes: a list may report thousands of policies. */
  #policiesChanged(namespace: string): void {
    this.#selectors.delete(namespace);
    this.#crowded.delete(namespace);
    this.#changed.add(namespace);
    this.#structureChanged = true;
  }

  #placeChanged(): void {
    if (this.#changed.size === 0) return;
    for (const namespace of this.#changed) this.#selectorsOf(namespace);
    for (const [key, pod] of this.#local) if (this.#changed.has(pod.namespace)) this.#place(key, pod.namespace);
    this.#changed.clear();
  }

  /** Policies of a namespace. In the order of their keys, policies keep their rules until the limits are reached. */
  #selectorsOf(namespace: string): Selectors {
    const known = this.#selectors.get(namespace);
    if (known !== undefined) return known;
    const permitting: Record<Direction, CompiledPolicy[]> = { ingress: [], egress: [] };
    const denying: Record<Direction, CompiledPolicy[]> = { ingress: [], egress: [] };
    const oversized: string[] = [];
    let size = 0;
    let count = 0;
    for (const policy of [...(this.#policiesByNamespace.get(namespace)?.values() ?? [])].sort(byKey)) {
      const hasRules = DIRECTIONS.some((direction) => (policy[direction] ?? []).length > 0);
      const fits = size + policy.size <= MAX_POLICY_SIZE && (!hasRules || count < MAX_POLICIES);
      if (!fits) oversized.push(policy.key);
      else {
        size += policy.size;
        if (hasRules) count += 1;
      }
      for (const direction of DIRECTIONS) {
        const rules = policy[direction];
        if (rules !== undefined) (fits && rules.length > 0 ? permitting : denying)[direction].push(policy);
      }
    }
    if (oversized.length === 0) this.#oversized.delete(namespace);
    else this.#oversized.set(namespace, oversized);
    const made = { permitting, denying, byLabels: new BoundedMap<string, Isolation>(MAX_KEPT) };
    this.#selectors.set(namespace, made);
    return made;
  }

  #podChanged(key: string, namespace: string): void {
    this.#memberships.podChanged(key, namespace);
    this.#place(key, namespace);
  }

  /** Computes the isolation of a pod if it is on this node. */
  #place(key: string, namespace: string): void {
    const pod = this.#pods.get(key);
    const attached = this.#attached.get(key);
    const before = this.#local.get(key);
    if (pod?.nodeName !== this.#options.nodeName && attached === undefined) {
      if (before === undefined) return;
      this.#local.delete(key);
    } else {
      const isolation = this.#isolationOf(namespace, pod);
      this.#local.set(key, { namespace, ips: attached ?? pod?.ips ?? [], isolation });
    }
    const after = this.#local.get(key);
    if (!sameIsolation(before?.isolation ?? FREE, after?.isolation ?? FREE)) this.#structureChanged = true;
    for (const ip of before?.ips ?? []) {
      this.#owners.get(ip)?.delete(key);
      if (this.#owners.get(ip)?.size === 0) this.#owners.delete(ip);
    }
    for (const ip of after?.ips ?? []) this.#owners.set(ip, (this.#owners.get(ip) ?? new Set()).add(key));
    for (const ip of new Set([...(before?.ips ?? []), ...(after?.ips ?? [])])) this.#placeAddress(ip);
  }

  #placeAddress(ip: string): void {
    const owners = [...(this.#owners.get(ip) ?? [])];
    const owner = owners.find((key) => this.#attached.has(key)) ?? owners.at(-1);
    const isolation = (owner === undefined ? undefined : this.#local.get(owner)?.isolation) ?? FREE;
    const family = ip.includes(':') ? 6 : 4;
    const elements: (readonly [ElementSet, string])[] = [];
    for (const direction of DIRECTIONS) {
      const policies = isolation[direction];
      if (policies === undefined) continue;
      elements.push([this.#maps[`${direction}${family}`], `${ip} : jump ${this.#group(direction, policies)}`]);
    }
    if (isolation !== FREE) elements.push([this.#maps[`self${family}`], `${ip} . ${ip}`]);
    for (const [set, element] of elements) set.add(element);
    for (const [set, element] of this.#elements.get(ip) ?? []) set.remove(element);
    if (elements.length === 0) this.#elements.delete(ip);
    else this.#elements.set(ip, elements);
  }

  #isolationOf(namespace: string, pod: PolicyPod | undefined): Isolation {
    const { permitting, denying, byLabels } = this.#selectorsOf(namespace);
    const labels = pod === undefined ? '' : JSON.stringify(pod.labels);
    const known = byLabels.get(labels);
    if (known !== undefined) return known;
    const found = (direction: Direction): Isolation[Direction] => {
      const candidates = permitting[direction];
      // While the labels are unknown, the pod could match any policy, so all traffic is dropped.
      if (pod === undefined) return candidates.length + denying[direction].length > 0 ? NONE : undefined;
      const selects = ({ podSelector }: CompiledPolicy): boolean => matchesLabels(podSelector, pod.labels);
      const selecting = candidates.filter(selects);
      return selecting.length > 0 ? selecting : denying[direction].some(selects) ? NONE : undefined;
    };
    const [ingress, egress] = [found('ingress'), found('egress')];
    const isolation = ingress === undefined && egress === undefined ? FREE : { ingress, egress };
    byLabels.set(labels, isolation);
    return isolation;
  }

  #group(direction: Direction, policies: readonly CompiledPolicy[]): string {
    const known = this.#groups[direction].get(policies);
    if (known !== undefined) return known;
    const name = this.#nameOf('g', JSON.stringify([direction, ...policies.map(({ key }) => key)]));
    this.#groups[direction].set(policies, name);
    return name;
  }

  #nameOf(prefix: string, id: string): string {
    const known = this.#names.get(`${prefix} ${id}`);
    if (known !== undefined) return known;
    const name = `${prefix}${++this.#numbers}`;
    this.#names.set(`${prefix} ${id}`, name);
    return name;
  }

  /** Whether to compute the sets of a chain again: only if the cluster now has clearly fewer pods. */
  readonly #mayFit = ({ pods }: Crowded): boolean => this.#pods.size < pods * 0.9;

  /** Updates the sets for changed pods, and the chains if the structure changed or a namespace may be too large. */
  *#updateSets(): Steps<void> {
    const memberships = this.#memberships;
    for (;;) {
      // As long as all sets together are below the limit of one namespace, no namespace can exceed the limit.
      const checked = Math.max(this.#checkedSize, MAX_MEMBERS);
      const isComplete = yield* memberships.update(checked + MAX_GROWTH);
      const mayFit = [...this.#crowded.values()].some((chains) => [...chains.values()].some(this.#mayFit));
      if (this.#structureChanged || memberships.size > checked || mayFit) yield* this.#restructure();
      if (isComplete) return;
    }
  }

  /**
   * Returns the rules of a policy for one direction and fills the sets that the rules use. Undefined if the sets of the
   * namespace would be too large. Rules are cached per policy: for an unchanged chain the same array is returned.
   */
  *#rulesOf(policy: CompiledPolicy, direction: Direction, usage: Usage): Steps<readonly string[] | undefined> {
    const memberships = this.#memberships;
    let rules = this.#rules[direction].get(policy);
    if (rules === undefined || memberships.isDropped(rules.uses)) {
      rules = yield* memberships.collect(
        ruleSteps(policy, direction, {
          pods: (selection, family) => memberships.selection(selection, family),
          port: (port, family) => memberships.port(port, family),
        }),
      );
    }
    const added: TrackedSelection[] = [];
    let { size } = usage;
    for (const tracked of rules.uses) {
      if (usage.sets.has(tracked)) continue;
      if (!(yield* memberships.fill(tracked, MAX_MEMBERS - size))) return undefined;
      size += tracked.size;
      added.push(tracked);
    }
    for (const tracked of added) usage.sets.add(tracked);
    usage.size = size;
    memberships.mark(rules.uses);
    this.#rules[direction].set(policy, rules);
    return rules.made;
  }

  /** Rebuilds the chains for the pods of this node. */
  *#restructure(): Steps<void> {
    const chains = new Map<string, readonly string[]>();
    const memberships = this.#memberships;
    const wanted = new Map<string, { readonly policy: CompiledPolicy; readonly direction: Direction }>();
    memberships.unmark();
    for (const { isolation } of this.#local.values()) {
      for (const direction of DIRECTIONS) {
        const policies = isolation[direction];
        if (policies === undefined) continue;
        const group = this.#group(direction, policies);
        if (chains.has(group)) continue;
        const jumps: string[] = [];
        for (const policy of policies) {
          const chain = this.#nameOf('p', JSON.stringify([direction, policy.key]));
          jumps.push(`jump ${chain}`);
          wanted.set(chain, { policy, direction });
        }
        const own = ['ip saddr . ip daddr @self4 accept', 'ip6 saddr . ip6 daddr @self6 accept'];
        chains.set(group, [...own, ...jumps, 'counter drop']);
        yield;
      }
    }
    const usages = new Map<string, Usage>();
    const crowded = new Map<string, Map<string, Crowded>>();
    for (const [chain, { policy, direction }] of [...wanted].sort(([, left], [, right]) =>
      byKey(left.policy, right.policy),
    )) {
      const { namespace, key } = policy;
      const usage = usages.get(namespace) ?? { sets: new Set(), size: 0 };
      usages.set(namespace, usage);
      let found = this.#crowded.get(namespace)?.get(chain);
      if (found !== undefined && this.#mayFit(found)) found = undefined;
      const rules = found === undefined ? yield* this.#rulesOf(policy, direction, usage) : undefined;
      chains.set(chain, rules ?? NO_RULES);
      if (rules !== undefined) continue;
      const ofNamespace = crowded.get(namespace) ?? new Map<string, Crowded>();
      crowded.set(namespace, ofNamespace.set(chain, found ?? { policy: key, pods: this.#pods.size }));
    }
    this.#crowded = crowded;
    memberships.dropUnused();
    this.#checkedSize = memberships.size;
    // Names of deleted chains are never reused.
    const gone = [...this.#names].filter(([, name]) => !chains.has(name));
    for (const [id] of gone) this.#names.delete(id);
    if (gone.length > 0) this.#groups = newGroups();
    this.#chains = chains;
    this.#structureChanged = false;
  }
}

const newGroups = (): Readonly<Record<Direction, WeakMap<readonly CompiledPolicy[], string>>> => ({
  ingress: new WeakMap(),
  egress: new WeakMap(),
});

const byKey = (left: CompiledPolicy, right: CompiledPolicy): number => (left.key < right.key ? -1 : 1);

/** Compares policies by identity, because a changed policy is compiled again. */
function sameIsolation(left: Isolation, right: Isolation): boolean {
  return DIRECTIONS.every((direction) => {
    const [a, b] = [left[direction], right[direction]];
    if (a === b || a === undefined || b === undefined) return a === b;
    return a.length === b.length && a.every((policy, index) => policy === b[index]);
  });
}
