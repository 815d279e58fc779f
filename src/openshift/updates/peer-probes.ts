/** Probes hosts that are being updated, and evaluates the results of other hosts' probes of this host. */
import type { Node } from '../../api/generated/core/v1.ts';
import {
  hostUpdateOf,
  PEERS_ANNOTATION,
  type PeerReport,
  type PeerResult,
  peerReportOf,
} from '../../api/kinds/nodes/nodes/host-report.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient, Informer } from '../../client/types.ts';
import { type PeerHost, probersOf, unreachableReason } from './core/index.ts';

export interface PeerProbesDeps {
  readonly nodeName: string;
  readonly client: ApiClient;
  readonly nodes: Informer<Node>;
  /**
   * Connects to the components of a host. Rejects with the reason if a component is unreachable, or if `signal` aborts.
   */
  readonly probe: (node: Node, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface PeerProbes {
  /** Reason why most probing hosts cannot reach this host. Empty if they can reach it, or if no host probes it. */
  unreached(updateId: string): string;
  stop(): Promise<void>;
}

const PERIOD_MS = 2_000;
const AGAIN_MS = 200;
const TIMEOUT_MS = 2_000;
const MASTER_LABEL = 'node-role.kubernetes.io/master';

export function startPeerProbes({ nodeName, client, nodes, probe, clock, log }: PeerProbesDeps): PeerProbes {
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
  const ended = new AbortController();

  const hosts = (): PeerHost[] => nodes.list().map(peerOf);

  const twice = async (node: Node): Promise<string> => {
    const once = (): Promise<string> =>
      probe(node, AbortSignal.any([ended.signal, AbortSignal.timeout(TIMEOUT_MS)])).then(() => '', messageOf);
    if ((await once()) === '') return '';
    await new Promise<void>((resolve) => {
      clock.setTimer(AGAIN_MS, resolve);
    });
    return once();
  };

  /** Runs one round of probes. Resolves with true if hosts are being updated, so that another round is needed. */
  const round = async (): Promise<boolean> => {
    const own = nodes.get(nodeName);
    if (own === undefined) return false;
    const all = hosts();
    const targets = nodes.list().flatMap((node) => {
      const update = hostUpdateOf(node);
      const { name = '' } = node.metadata ?? {};
      const isOwn = probersOf(name, all).some((each) => each.name === nodeName);
      return update?.state === 'Restarting' && isOwn ? [{ name, node, id: update.id }] : [];
    });
    const results = await Promise.all(
      targets.map(async ({ name, node, id }): Promise<[string, PeerResult]> => [name, { id, why: await twice(node) }]),
    );
    const report: PeerReport = Object.fromEntries(results);
    const present = peerReportOf(nodes.get(nodeName) ?? own);
    if ((present === undefined || !semanticEqual(present, report)) && !ended.signal.aborted) {
      const annotations = { [PEERS_ANNOTATION]: JSON.stringify(report) };
      await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations } });
    }
    return targets.length > 0;
  };
  const wake = (delayMs: number): void => {
    if (running !== undefined || ended.signal.aborted) return;
    timer?.cancel();
    timer = clock.setTimer(delayMs, () => {
      running = round()
        .catch((error: unknown) => {
          log.v(2, 'probes of other hosts not reported; retrying', { error: messageOf(error) });
          return true;
        })
        .then((again) => {
          running = undefined;
          if (again) wake(PERIOD_MS);
        });
    });
  };
  const changed = (node: Node): void => {
    const isNew = node.metadata?.name === nodeName && peerReportOf(node) === undefined;
    if (isNew || hostUpdateOf(node)?.state === 'Restarting') wake(0);
  };
  const unsubscribe = nodes.onChange({ added: changed, updated: changed });
  nodes.start();
  return {
    unreached: (updateId) => unreachableReason(nodeName, updateId, hosts()),
    stop: async () => {
      unsubscribe();
      ended.abort();
      timer?.cancel();
      await running;
    },
  };
}

function peerOf(node: Node): PeerHost {
  return {
    name: node.metadata?.name ?? '',
    master: node.metadata?.labels?.[MASTER_LABEL] !== undefined,
    ready: node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
    report: peerReportOf(node),
  };
}
