/**
 * Runs on masters: creates the ConfigMaps of node groups, and sets the labels of a Node's group on the Node, because
 * NodeRestriction forbids kubelets to set these labels. GROUP_LABEL, which no kubelet can change, determines the group
 * of a Node. A Node without this label gets the group of the deleted Node with the same name. If there is no such
 * record, it gets the group that its host claims. A claim never grants the labels of masters.
 */
import type { ConfigMap, Node } from '../../../api/generated/core/v1.ts';
import { DELETED_NODES, GROUP_CLAIM, GROUP_LABEL, mayKubeletLabel } from '../../../api/kinds/nodes/nodes/own-labels.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { ApiClient, Informer, InformerFactory } from '../../../client/types.ts';
import { ignoreAlreadyExists } from '../../../controllers/framework/ignore-already-exists.ts';
import { defaultGroups, GROUP_KEY, GROUP_NAMESPACE } from './default-groups.ts';

const MASTER_LABELS = /^node-role\.kubernetes\.io\/(master|control-plane)$/;
const RETRY_MS = 5_000;

export interface GroupKeeperOptions {
  /** Informers of a client that may read all Nodes and the ConfigMaps of node groups. */
  readonly informers: InformerFactory;
  /** Opens a client that may create ConfigMaps and label Nodes. */
  openAdmin(): Promise<{ readonly client: ApiClient; close(): Promise<void> }>;
  /** Returns the labels of a group's NodeConfig. Throws if the NodeConfig is invalid. */
  readonly labelsOf: (text: string) => Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Starts to maintain the ConfigMaps of node groups and the labels of Nodes. Returns a function that stops this. */
export function keepNodeGroups(options: GroupKeeperOptions): () => void {
  const keeper = new NodeGroupKeeper(options);
  keeper.start();
  return () => keeper.stop();
}

interface NodeLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Differences between the cluster and its wanted state. */
interface Differences {
  readonly missingGroups: readonly ConfigMap[];
  readonly wrongLabels: readonly NodeLabels[];
  /** Names of Nodes that exist again, whose records of the deleted Node are no longer needed. */
  readonly returnedNodes: readonly string[];
}

class NodeGroupKeeper {
  readonly #options: GroupKeeperOptions;
  readonly #nodes: Informer<Node>;
  readonly #groups: Informer<ConfigMap>;
  #closers: readonly (() => void)[] = [];
  #isStopped = false;
  #isRunning = false;
  #runsAgain = false;
  #retry: Timer | undefined;

  constructor(options: GroupKeeperOptions) {
    this.#options = options;
    this.#nodes = options.informers.informer(resources.nodes);
    this.#groups = options.informers.informer(resources.configMaps, { namespace: GROUP_NAMESPACE });
  }

  start(): void {
    const run = (): void => this.#run();
    this.#closers = [
      this.#nodes.onChange({
        added: run,
        // Changes of other fields, such as conditions and addresses, are ignored.
        updated: (node, old) => {
          if (marksOf(node) !== marksOf(old)) run();
        },
      }),
      this.#groups.onChange({ added: run, updated: run, deleted: run }),
    ];
    for (const informer of [this.#nodes, this.#groups]) informer.start();
    void Promise.all([this.#nodes.synced, this.#groups.synced]).then(run);
  }

  stop(): void {
    this.#isStopped = true;
    this.#retry?.cancel();
    for (const close of this.#closers) close();
  }

  #run(): void {
    this.#runsAgain = true;
    if (this.#isRunning || this.#isStopped || !this.#nodes.hasSynced || !this.#groups.hasSynced) return;
    this.#isRunning = true;
    this.#runsAgain = false;
    const { clock, log } = this.#options;
    this.#sync()
      .catch((error: unknown) => {
        log.warn('node groups not synchronized; retrying', { error: messageOf(error) });
        this.#retry = clock.setTimer(RETRY_MS, () => this.#run());
      })
      .finally(() => {
        this.#isRunning = false;
        if (this.#runsAgain) this.#run();
      });
  }

  async #sync(): Promise<void> {
    const differences = this.#differences();
    if (Object.values(differences).every(({ length }) => length === 0)) return;
    const admin = await this.#options.openAdmin();
    try {
      await this.#write(admin.client, differences);
    } finally {
      await admin.close();
    }
  }

  #differences(): Differences {
    const deleted = this.#groups.get(`${DELETED_NODES.namespace}/${DELETED_NODES.name}`)?.data ?? {};
    const group = (name: string) => this.#groups.get(`${GROUP_NAMESPACE}/${name}`);
    const missingGroups = defaultGroups().filter(({ metadata }) => group(metadata?.name ?? '') === undefined);
    const wrongLabels = this.#nodes.list().flatMap((node) => {
      const labels = wantedLabels(node, deleted, group, this.#options);
      const changed = Object.entries(labels).filter(([name, value]) => node.metadata?.labels?.[name] !== value);
      return changed.length === 0 ? [] : [{ name: node.metadata?.name ?? '', labels: Object.fromEntries(changed) }];
    });
    // Once the new Node of this name has the label, delete the record of the deleted Node. If an administrator then
    // removes the label, the record must not restore it.
    const returnedNodes = this.#nodes
      .list()
      .filter(({ metadata }) => metadata?.labels?.[GROUP_LABEL] !== undefined && isOfAnother(deleted, metadata))
      .map(({ metadata }) => metadata?.name ?? '');
    return { missingGroups, wrongLabels, returnedNodes };
  }

  async #write(client: ApiClient, { missingGroups, wrongLabels, returnedNodes }: Differences): Promise<void> {
    const groups = client.resource(resources.configMaps);
    for (const group of missingGroups) await ignoreAlreadyExists(() => groups.create(group));
    for (const { name, labels } of wrongLabels) {
      await client.resource(resources.nodes).patch(name, undefined, 'merge', { metadata: { labels } });
      this.#options.log.info('labels of the node group set', { node: name, labels });
    }
    if (returnedNodes.length === 0) return;
    const { namespace, name } = DELETED_NODES;
    const data = Object.fromEntries(returnedNodes.map((node) => [node, null]));
    await groups.patch(name, namespace, 'merge', { data });
  }
}

const marksOf = ({ metadata }: Node): string =>
  JSON.stringify([metadata?.uid, metadata?.labels, metadata?.annotations?.[GROUP_CLAIM]]);

/**
 * Whether the record belongs to an earlier Node with this name. The record of a Node that is being deleted has the same
 * UID.
 */
function isOfAnother(left: Readonly<Record<string, string>>, { name = '', uid = '' }: NonNullable<Node['metadata']>) {
  return Object.hasOwn(left, name) && left[name]?.split(' ')[1] !== uid;
}

function wantedLabels(
  { metadata }: Node,
  left: Readonly<Record<string, string>>,
  group: (name: string) => ConfigMap | undefined,
  { labelsOf, log }: GroupKeeperOptions,
): Record<string, string> {
  const known = metadata?.labels?.[GROUP_LABEL];
  const remembered = Object.hasOwn(left, metadata?.name ?? '') ? left[metadata?.name ?? '']?.split(' ')[0] : undefined;
  const name = known ?? remembered ?? metadata?.annotations?.[GROUP_CLAIM];
  const text = name === undefined ? undefined : group(name)?.data?.[GROUP_KEY];
  if (name === undefined || text === undefined) return {};
  try {
    const labels = Object.entries(labelsOf(text)).filter(
      ([label]) => !mayKubeletLabel(label) && !MASTER_LABELS.test(label),
    );
    return { [GROUP_LABEL]: name, ...Object.fromEntries(labels) };
  } catch (error) {
    log.warn('node group not valid', { group: name, error: messageOf(error) });
    return {};
  }
}
