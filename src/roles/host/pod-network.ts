/**
 * Carries the pod range that the controllers gave this node's object to the pod network. The range is remembered, so that a host whose
 * API server is away still starts its pods.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import type { Node } from 'kubernetes-types/core/v1';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import type { PodNetwork } from '../../io/oci/port.ts';

export interface PodNetworkFollower {
  /** Why pods cannot have addresses yet; undefined when they can. */
  notReady(): string | undefined;
  /** Resolves when the API server has answered with what it knows of this node. */
  readonly synced: Promise<void>;
  stop(): void;
}

export interface PodNetworkOptions {
  readonly network: PodNetwork;
  readonly informers: InformerFactory;
  readonly nodeName: string;
  /** File that remembers the range. */
  readonly file: string;
  /** The range to begin with when none is remembered and the host needs its bridge at once. */
  readonly initial: string | undefined;
  /** Called once a range is in force. */
  readonly onReady: (cidr: string) => void;
  readonly log: Log;
}

/**
 * Resolves once a remembered range is in force. The informer is started; it goes on trying for as long as the API server is away.
 */
export async function followPodNetwork(options: PodNetworkOptions): Promise<PodNetworkFollower> {
  const { network, nodeName, log } = options;
  let inForce: string | undefined;
  let problem = `node "${nodeName}" has no pod CIDR yet`;
  /** One change at a time, the last one wins. */
  let applying: Promise<void> = Promise.resolve();
  const apply = (cidr: string): void => {
    applying = applying.then(async () => {
      if (cidr === inForce) return;
      try {
        await network.setPodCidr(cidr);
        inForce = cidr;
        options.onReady(cidr);
        await remember(options.file, cidr).catch((error: unknown) => {
          log.warn('pod CIDR not remembered', { file: options.file, error: messageOf(error) });
        });
      } catch (error) {
        problem = messageOf(error);
        log.error('pod network cannot take its range', { cidr, error: problem });
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
    notReady: () => (inForce === undefined ? problem : undefined),
    synced: informer.synced,
    stop: unsubscribe,
  };
}

async function remember(file: string, cidr: string): Promise<void> {
  if ((await readFile(file, 'utf8').catch(() => '')).trim() === cidr) return;
  await writeFile(`${file}.new`, `${cidr}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
