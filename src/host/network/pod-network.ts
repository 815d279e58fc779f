/**
 * Applies the Node's podCIDRs to the pod network. The last podCIDRs are stored in a file, so that a host can start its
 * pods without the API server.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Node } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { PodNetwork } from '../../runtime/oci/port.ts';
import { readIfPresent } from '../../wire/strict-yaml.ts';

export interface PodNetworkFollower {
  /** Reason why the pod network is not ready; undefined if it is ready. */
  notReady(): string | undefined;
  /** Resolves when the Node informer has synced. */
  readonly synced: Promise<void>;
  stop(): void;
}

export interface PodNetworkOptions {
  readonly network: PodNetwork;
  readonly informers: InformerFactory;
  readonly nodeName: NodeName;
  /** File with the last pod CIDRs. */
  readonly file: string;
  /**
   * Pod CIDR to use if the file is empty and the host needs its bridge immediately; undefined if the host waits for the
   * Node.
   */
  readonly initial: string | undefined;
  /** Called when pod CIDRs have been applied. */
  readonly onReady: (cidrs: string) => void;
  readonly log: Log;
}

/**
 * Starts the Node informer, which retries until the API server answers. Resolves when the pod CIDRs in the file are
 * applied.
 */
export async function followPodNetwork(options: PodNetworkOptions): Promise<PodNetworkFollower> {
  const { network, nodeName, log } = options;
  let applied: string | undefined;
  let problem = `node "${nodeName}" has no pod CIDR yet`;
  /** Chain of changes, so that they are applied one after another. The last change determines the result. */
  let applying: Promise<void> = Promise.resolve();
  const apply = (cidrs: string): void => {
    applying = applying.then(async () => {
      if (cidrs === applied) return;
      try {
        await network.setPodCidrs(cidrs.split(','));
        applied = cidrs;
        options.onReady(cidrs);
        await remember(options.file, cidrs).catch((error: unknown) => {
          log.warn('pod CIDR not saved', { file: options.file, error: messageOf(error) });
        });
      } catch (error) {
        problem = messageOf(error);
        log.error('pod CIDR not applied', { cidrs, error: problem });
      }
    });
  };
  const take = (node: Node): void => {
    const cidrs = node.spec?.podCIDRs ?? [node.spec?.podCIDR ?? ''];
    if (cidrs[0] !== undefined && cidrs[0] !== '') apply(cidrs.join(','));
  };
  const first = await readIfPresent(options.file).then(
    (text = '') => (text.trim() === '' ? options.initial : text.trim()),
    (error: unknown) => {
      // `initial` is not used, because the file may contain other CIDRs. The Node will supply the CIDRs.
      problem = messageOf(error);
      log.error('pod CIDR not read; waiting for the Node', { file: options.file, error: problem });
      return undefined;
    },
  );
  if (first !== undefined) {
    apply(first);
    await applying;
  }
  const informer = options.informers.informer(resources.nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const unsubscribe = informer.onChange({ added: take, updated: take });
  informer.start();
  return {
    notReady: () => (applied === undefined ? problem : undefined),
    synced: informer.synced,
    stop: unsubscribe,
  };
}

async function remember(file: string, cidrs: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')).trim() === cidrs) return;
  await writeFile(`${file}.new`, `${cidrs}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
