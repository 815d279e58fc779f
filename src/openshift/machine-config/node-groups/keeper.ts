/**
 * Runs on masters: creates the ConfigMaps of node groups, and sets the labels of a Node's group on the Node, because
 * NodeRestriction forbids kubelets to set these labels. GROUP_LABEL, which no kubelet can change, determines the group
 * of a Node. A Node without this label gets the group of the deleted Node with the same name. If there is no such
 * record, it gets the group that its host claims. A claim never grants the labels of masters.
 */
import type { ConfigMap, Node } from '../../../api/generated/core/v1.ts';
import { DELETED_NODES, GROUP_CLAIM, GROUP_LABEL, mayKubeletLabel } from '../../../api/kinds/nodes/nodes/own-labels.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { ApiClient, InformerFactory } from '../../../client/types.ts';
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
  const { clock, log } = options;
  const nodes = options.informers.informer(resources.nodes);
  const groups = options.informers.informer(resources.configMaps, { namespace: GROUP_NAMESPACE });
  let stopped = false;
  let running = false;
  let again = false;
  let timer: Timer | undefined;
  const left = (): Readonly<Record<string, string>> =>
    groups.get(`${DELETED_NODES.namespace}/${DELETED_NODES.name}`)?.data ?? {};
  const sync = async (): Promise<void> => {
    const missing = defaultGroups().filter(
      ({ metadata }) => groups.get(`${GROUP_NAMESPACE}/${metadata?.name}`) === undefined,
    );
    const wrong = nodes.list().flatMap((node) => {
      const labels = wantedLabels(node, left(), (name) => groups.get(`${GROUP_NAMESPACE}/${name}`), options);
      const changed = Object.entries(labels).filter(([name, value]) => node.metadata?.labels?.[name] !== value);
      return changed.length === 0 ? [] : [{ name: node.metadata?.name ?? '', labels: Object.fromEntries(changed) }];
    });
    // Once the new Node of this name has the label, delete the record of the deleted Node. If an administrator then
    // removes the label, the record must not restore it.
    const back = nodes
      .list()
      .filter(({ metadata }) => metadata?.labels?.[GROUP_LABEL] !== undefined && isOfAnother(left(), metadata))
      .map(({ metadata }) => metadata?.name ?? '');
    if (missing.length + wrong.length + back.length === 0) return;
    const admin = await options.openAdmin();
    try {
      for (const group of missing) {
        await admin.client
          .resource(resources.configMaps)
          .create(group)
          .catch((error: unknown) => {
            if (!isApiError(error, 'AlreadyExists')) throw error;
          });
      }
      for (const { name, labels } of wrong) {
        await admin.client.resource(resources.nodes).patch(name, undefined, 'merge', { metadata: { labels } });
        log.info('labels of the node group set', { node: name, labels });
      }
      if (back.length > 0) {
        const { namespace, name } = DELETED_NODES;
        const data = Object.fromEntries(back.map((node) => [node, null]));
        await admin.client.resource(resources.configMaps).patch(name, namespace, 'merge', { data });
      }
    } finally {
      await admin.close();
    }
  };
  const run = (): void => {
    again = true;
    if (running || stopped || !nodes.hasSynced || !groups.hasSynced) return;
    running = true;
    again = false;
    sync()
      .catch((error: unknown) => {
        log.warn('node groups not synchronized; retrying', { error: messageOf(error) });
        timer = clock.setTimer(RETRY_MS, run);
      })
      .finally(() => {
        running = false;
        if (again) run();
      });
  };
  const closers = [
    nodes.onChange({
      added: run,
      // Changes of other fields, such as conditions and addresses, are ignored.
      updated: (node, old) => {
        if (marksOf(node) !== marksOf(old)) run();
      },
    }),
    groups.onChange({ added: run, updated: run, deleted: run }),
  ];
  for (const informer of [nodes, groups]) informer.start();
  void Promise.all([nodes.synced, groups.synced]).then(run);
  return () => {
    stopped = true;
    timer?.cancel();
    for (const close of closers) close();
  };
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
