/**
 * Applies the Node's podCIDR to the pod network. The CIDR is kept in a file, so that a host starts its pods without the
 * API server.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Node } from 'kubernetes-types/core/v1';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { PodNetwork } from '../../io/oci/port.ts';

export interface PodNetworkFollower {
  /** Why the pod network is not ready; undefined when it is. */
  notReady(): string | undefined;
  /** Resolves when the Node informer has synced. */
  readonly synced: Promise<void>;
  stop(): void;
}

export interface PodNetworkOptions {
  readonly network: PodNetwork;
  readonly informers: InformerFactory;
  readonly nodeName: string;
  /** The file with the last pod CIDR. */
  readonly file: string;
  /** The first pod CIDR when the file is empty and the host needs its bridge immediately. */
  readonly initial: string | undefined;
  /** Called when a pod CIDR has been applied. */
  readonly onReady: (cidr: string) => void;
  readonly log: Log;
}

/**
 * Starts the Node informer, which retries until the API server answers. Resolves when the CIDR of the file has been
 * applied.
 */
export async function followPodNetwork(options: PodNetworkOptions): Promise<PodNetworkFollower> {
  const { network, nodeName, log } = options;
  let applied: string | undefined;
  let problem = `node "${nodeName}" has no pod CIDR yet`;
  /** Changes are applied one at a time; the last one wins. */
  let applying: Promise<void> = Promise.resolve();
  const apply = (cidr: string): void => {
    applying = applying.then(async () => {
      if (cidr === applied) return;
      try {
        await network.setPodCidr(cidr);
        applied = cidr;
        options.onReady(cidr);
        await remember(options.file, cidr).catch((error: unknown) => {
          log.warn('pod CIDR not saved', { file: options.file, error: messageOf(error) });
        });
      } catch (error) {
        problem = messageOf(error);
        log.error('pod CIDR not applied', { cidr, error: problem });
      }
    });
  };
  const take = (node: Node): void => {
    const cidr = node.spec?.podCIDR;
    if (cidr !== undefined && cidr !== '') apply(cidr);
  };
  const known = (await readFile(options.file, 'utf8').catch(() => '')).trim();
  const first = known === '' ? options.initial : known;
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

async function remember(file: string, cidr: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')).trim() === cidr) return;
  await writeFile(`${file}.new`, `${cidr}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
