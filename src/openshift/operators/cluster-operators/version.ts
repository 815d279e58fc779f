/** Maintains the ClusterVersion `version` while this master leads, and requests updates of one host after the other. */
import type { Namespace, Node } from '../../../api/generated/core/v1.ts';
import {
  hostReportOf,
  hostUpdateOf,
  WANTED_ANNOTATION,
  wantedUpdateOf,
} from '../../../api/kinds/nodes/nodes/host-report.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { RELEASE_NAMESPACE } from '../../../api/releases/announcement.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { ApiClient, EventRecorder, Informer, InformerFactory } from '../../../client/types.ts';
import { type GivenUp, planVersion, type RolloutHost } from '../../updates/core/index.ts';
import type { ClusterOperator, ClusterVersion } from '../kinds/config/types.ts';
import { recordTransition } from '../transition-events-port.ts';
import { type PoolFact, type ProbeFacts, statusDiff } from './core/index.ts';
import type { CommitStore } from './port.ts';
import type { Releases } from './releases.ts';

export interface VersionDeps {
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly releases: Releases;
  readonly recorder: EventRecorder;
  readonly own: { readonly version: string; readonly kubernetes: string };
  readonly commitStore: CommitStore;
  readonly clock: Clock;
  readonly log: Log;
}

const NAME = 'version';
const GIVEN_UP = 'hyperedge.dev/given-up-update';
const ZONE = 'topology.kubernetes.io/zone';
const ROLE = 'node-role.kubernetes.io/';
const FRESH_MS = 30_000;
const DEFAULT_CHANNEL = 'stable';
const COMMIT_RETRY_MS = 15_000;
const COMMIT_MS = 600_000;

export class Version {
  readonly #deps: VersionDeps;
  readonly #objects: Informer<ClusterVersion>;
  #written: ClusterVersion | undefined;
  /**
   * Hosts that are being updated, with the request ID and its start. Starts observed by an earlier leader are unknown.
   */
  readonly #underWay = new Map<string, { readonly id: string; readonly sinceMs: number }>();
  #updatingTo: string | undefined;
  /** Host versions for which the store was last committed, and the time at which the commit is repeated. */
  #commit = { versions: '', nextMs: 0 };

  constructor(deps: VersionDeps) {
    this.#deps = deps;
    this.#objects = deps.informers.informer(resources.clusterVersions);
  }

  /** Version to which hosts are being updated; undefined if there is no update. */
  get updatingTo(): string | undefined {
    return this.#updatingTo;
  }

  onChange(changed: () => void): () => void {
    return this.#objects.onChange({ added: changed, updated: changed, deleted: changed });
  }

  start(): void {
    this.#written = undefined;
    this.#underWay.clear();
    this.#commit = { versions: '', nextMs: 0 };
  }

  async apply(facts: ProbeFacts, nodes: readonly Node[], operators: readonly ClusterOperator[]): Promise<void> {
    const object = this.#newest() ?? (await this.#create());
    const releases = this.#deps.releases.list();
    // The version of the cluster is unknown until the first host reports.
    if (!nodes.some((node) => hostReportOf(node) !== undefined)) return;
    const plan = planVersion({
      object,
      givenUp: givenUpOf(object),
      hosts: this.#hosts(facts, nodes),
      architectures: architecturesOf(nodes),
      operators,
      releases,
      own: this.#deps.own,
      nowMs: this.#deps.clock.nowMs(),
    });
    this.#updatingTo = plan.updatingTo;
    try {
      const current = semanticEqual(plan.givenUp, givenUpOf(object))
        ? object
        : await this.#abandonUpdate(object, plan.givenUp);
      if (!semanticEqual(current.status, plan.status)) await this.#write(current, plan.status);
      if (plan.hostRequest !== undefined) {
        const { host, wanted } = plan.hostRequest;
        await this.#requestUpdate(host, this.#drains(host, facts, nodes) ? { ...wanted, drain: true } : wanted);
      }
      if (plan.updatingTo === undefined && plan.status.history?.[0]?.state === 'Completed') this.#commitStore(nodes);
    } catch (error) {
      if (!(['Conflict', 'NotFound'] as const).some((each) => isApiError(error, each))) throw error;
      this.#written = undefined;
    }
  }

  async #create(): Promise<ClusterVersion> {
    const { client } = this.#deps;
    // The UID of this namespace is unique to the cluster and the same for every master, so it serves as cluster ID.
    const system: Namespace = await client.resource(resources.namespaces).get('kube-system');
    const spec = { clusterID: system.metadata?.uid ?? '', channel: DEFAULT_CHANNEL };
    const versions = client.resource(resources.clusterVersions);
    try {
      this.#written = await versions.create({ metadata: { name: NAME }, spec });
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      this.#written = await versions.get(NAME);
    }
    return this.#written;
  }

  async #write(object: ClusterVersion, status: ClusterVersion['status']): Promise<void> {
    const before = object.status;
    this.#written = await this.#deps.client
      .resource(resources.clusterVersions)
      .update({ ...object, ...(status === undefined ? {} : { status }) }, { subresource: 'status' });
    this.#record(this.#written, before);
  }

  #record(written: ClusterVersion, before: ClusterVersion['status']): void {
    const { recorder } = this.#deps;
    const object = { ...written, apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion' };
    const to = { object, namespace: RELEASE_NAMESPACE, component: 'cluster-version-operator' };
    const [now, last] = [written.status?.history?.[0], before?.history?.[0]];
    if (now !== undefined && last !== undefined && now.version !== last.version) {
      const message = `payload loaded version=${JSON.stringify(now.version)} image=${JSON.stringify(now.image)}`;
      recordTransition(recorder, to, { type: 'Normal', reason: 'PayloadLoaded', message });
    }
    const changed = statusDiff(before, { conditions: written.status?.conditions ?? [] });
    if (changed === '') return;
    const message = `Status for clusterversion/${NAME} changed: ${changed}`;
    recordTransition(recorder, to, { type: 'Normal', reason: 'OperatorStatusChanged', message });
  }

  async #abandonUpdate(object: ClusterVersion, givenUp: GivenUp | undefined): Promise<ClusterVersion> {
    this.#deps.log.error('update abandoned', { version: givenUp?.version, reason: givenUp?.message });
    const annotations = { [GIVEN_UP]: JSON.stringify(givenUp) };
    const { resourceVersion } = object.metadata ?? {};
    this.#written = await this.#deps.client
      .resource(resources.clusterVersions)
      .patch(NAME, undefined, 'merge', { metadata: { resourceVersion, annotations } });
    return this.#written;
  }

  async #requestUpdate(host: string, wanted: object): Promise<void> {
    this.#deps.log.info('host update requested', { host, ...wanted });
    const annotations = { [WANTED_ANNOTATION]: JSON.stringify(wanted) };
    await this.#deps.client.resource(resources.nodes).patch(host, undefined, 'merge', { metadata: { annotations } });
  }

  /** Commits the store format. Called when all hosts run the same version and no update is in progress. */
  #commitStore(nodes: readonly Node[]): void {
    const { clock, log, commitStore } = this.#deps;
    const versions = nodes.map((node) => `${node.metadata?.name} ${hostReportOf(node)?.version}`).join();
    const nowMs = clock.monotonicMs();
    if (this.#commit.versions === versions && nowMs < this.#commit.nextMs) return;
    const commit = { versions, nextMs: nowMs + COMMIT_RETRY_MS };
    this.#commit = commit;
    commitStore().then(
      (isDone) => {
        // The commit is repeated, because restoring a backup of the store may lower its format again.
        if (isDone) commit.nextMs = nowMs + COMMIT_MS;
      },
      (error: unknown) => log.v(2, 'store not committed to this release; retrying', { error: messageOf(error) }),
    );
  }

  #newest(): ClusterVersion | undefined {
    const cached = this.#objects.get(NAME);
    const written = this.#written;
    if (written === undefined || (cached !== undefined && version(cached) >= version(written))) return cached;
    return written;
  }

  #hosts(facts: ProbeFacts, nodes: readonly Node[]): RolloutHost[] {
    const leader = facts.etcd.state === 'value' ? facts.etcd.value.leader : '';
    const pools = facts.pools.state === 'value' ? facts.pools.value : [];
    return nodes.map((node) => {
      const { name = '', labels = {}, creationTimestamp = '' } = node.metadata ?? {};
      const fact = facts.hosts.find((each) => each.name === name);
      const ageMs = fact?.ageMs ?? Number.POSITIVE_INFINITY;
      const fault = faultOf(node, ageMs);
      const wanted = wantedUpdateOf(node);
      return {
        name,
        master: fact?.master === true,
        leadsStore: name === leader,
        healthy: fault === '',
        silent: ageMs > FRESH_MS,
        fault,
        version: hostReportOf(node)?.version ?? '',
        zone: labels[ZONE] ?? '',
        createdMs: Date.parse(creationTimestamp),
        paused: poolOf(labels, pools)?.paused === true,
        wanted,
        update: hostUpdateOf(node),
        underWayMs: this.#since(name, wanted?.id),
      };
    });
  }

  /**
   * Whether the host is drained before its update: its pool requires it, and another host exists that can run the pods.
   */
  #drains(host: string, { pools }: ProbeFacts, nodes: readonly Node[]): boolean {
    const labels = nodes.find(({ metadata }) => metadata?.name === host)?.metadata?.labels ?? {};
    return nodes.length > 1 && pools.state === 'value' && poolOf(labels, pools.value)?.drains === true;
  }

  #since(name: string, id: string | undefined): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const known = this.#underWay.get(name);
    if (id === undefined) return 0;
    if (known?.id === id) return nowMs - known.sinceMs;
    this.#underWay.set(name, { id, sinceMs: nowMs });
    return 0;
  }
}

function faultOf(node: Node, ageMs: number): string {
  if (ageMs > FRESH_MS) return 'the host does not report';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  if (ready !== 'True') return 'the Node is not Ready';
  const report = hostReportOf(node);
  if (report === undefined) return 'no report';
  const failing = Object.entries(report.probes).find(([, why]) => why !== '');
  return failing === undefined ? '' : `${failing[0]}: ${failing[1]}`;
}

/** Pool of a node, selected as the machine-config operator does: `master` first, then a custom pool, then `worker`. */
function poolOf(labels: Readonly<Record<string, string>>, pools: readonly PoolFact[]): PoolFact | undefined {
  const having = (name: string): boolean => labels[`${ROLE}${name}`] !== undefined;
  if (having('master')) return pools.find(({ name }) => name === 'master');
  const custom = pools.find(({ name }) => name !== 'worker' && name !== 'master' && having(name));
  return custom ?? pools.find(({ name }) => name === 'worker');
}

/** Architectures of the nodes, with the names that Node.js and the releases use (`x64` for `amd64`). */
function architecturesOf(nodes: readonly Node[]): string[] {
  const names = nodes.map(({ status }) => status?.nodeInfo?.architecture ?? '');
  return [...new Set(names.flatMap((name) => (name === '' ? [] : name === 'amd64' ? 'x64' : name)))].sort();
}

function givenUpOf({ metadata }: ClusterVersion): GivenUp | undefined {
  try {
    const { generation, version: given, message } = JSON.parse(metadata?.annotations?.[GIVEN_UP] ?? 'null') ?? {};
    return typeof generation === 'number' && typeof given === 'string' && typeof message === 'string'
      ? { generation, version: given, message }
      : undefined;
  } catch {
    return undefined;
  }
}

const version = ({ metadata }: ClusterVersion): bigint => BigInt(metadata?.resourceVersion ?? '0');
