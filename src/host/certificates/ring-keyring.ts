/**
 * The keyring of the gossip ring in the API, from which joining hosts get it, and the members of the ring that the API
 * lists.
 */
import { readFile } from 'node:fs/promises';
import type { Secret } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { isRemote, parseTarget } from '../../network/balancer/core/index.ts';
import type { NodeBalancer } from '../../network/balancer/index.ts';
import { lastKnownNode } from '../../network/pods/core/index.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import type { HostGossip } from '../network/gossip.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

/**
 * Secret with the keyring. Bootstrap tokens may read it, see `system:gossip-keyring-reader` of the bootstrap policy.
 */
export const KEYRING_SECRET = { namespace: 'kube-system', name: 'hyperedge-gossip-keyring' } as const;
export const KEYRING_FIELD = 'keyring';
const KEYRING_TYPE = 'hyperedge.dev/gossip-keyring';
const RETRY_MS = 2_000;

/**
 * Configures the masters that gossip joins: those that this host was connected to before its start, those in the
 * bootstrap file, and those that the API lists. If none of them is alive, gossip also tries the other Nodes: after the
 * address of the only master has changed, only other Nodes can reach the ring. The service proxy uses the same
 * informers.
 */
export function configureGossipPeers(
  gossip: Pick<HostGossip, 'setPeers'>,
  balancer: Pick<NodeBalancer, 'backends'>,
  informers: InformerFactory,
  { masters, nodeName }: Pick<Settings, 'masters' | 'nodeName'>,
): void {
  const named = masters.flatMap((url) => (URL.canParse(url) ? [new URL(url).hostname] : []));
  const saved = balancer
    .backends()
    .flatMap(({ target }) => (isRemote(target) ? (parseTarget(target)?.host ?? []) : []));
  const nodes = informers.informer(resources.nodes, { lastKnown: { set: 'nodes', kept: lastKnownNode } });
  let hosts: readonly string[] = saved.map(peerOf);
  let others = '';
  const changed = (): void => gossip.setPeers([...new Set([...named, ...hosts])], others.split(' ').filter(Boolean));
  changed();
  const learnNodes = (): void => {
    const found = nodes.list().filter(({ metadata }) => metadata?.name !== nodeName);
    const internal = found.flatMap(({ status }) => status?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
    const next = [...new Set(internal.map(({ address }) => peerOf(address)))].sort().join(' ');
    if (next === others) return;
    others = next;
    changed();
  };
  nodes.onChange({
    added: learnNodes,
    // Node conditions are updated frequently, so only changes of addresses are processed.
    updated: (node, old) => {
      if (JSON.stringify(node.status?.addresses) !== JSON.stringify(old.status?.addresses)) learnNodes();
    },
    deleted: learnNodes,
  });
  const learn = (slice: EndpointSlice): void => {
    if (slice.metadata?.namespace !== 'default' || slice.metadata.name !== 'kubernetes') return;
    const listed = (slice.endpoints ?? []).flatMap(({ addresses }) => addresses.map(peerOf));
    if (listed.length === 0) return;
    hosts = listed;
    changed();
  };
  informers
    .informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } })
    .onChange({ added: learn, updated: learn });
}

const peerOf = (address: string): string => (address.includes(':') ? `[${address}]` : address);

type PublishSettings = Pick<Settings, 'gossip' | 'roles' | 'root'>;

/**
 * Publishes the keyring of a master after each rotation, and at its start if none is published. If the published
 * keyring differs at the start, it is newer, because the ring rotated its keys while this host was down; this host
 * adopts it. Returns a function that ends the publication.
 */
export function publishKeyring(
  settings: PublishSettings,
  { followKeys, adoptKeys }: Pick<HostGossip, 'adoptKeys' | 'followKeys'>,
  log: Log,
): () => void {
  if (followKeys === undefined || !settings.roles.has('master')) return () => {};
  let stopped = false;
  let wanted = false;
  let running = false;
  let first = true;
  const run = async (): Promise<void> => {
    if (running) return;
    running = true;
    while (wanted && !stopped) {
      wanted = false;
      try {
        await publish(settings, first ? adoptKeys : undefined, log);
        first = false;
      } catch (error) {
        log.v(3, 'gossip keyring not published; retrying', { error: messageOf(error) });
        wanted = true;
        await new Promise<void>((resolve) => {
          clock.setTimer(RETRY_MS, resolve);
        });
      }
    }
    running = false;
  };
  followKeys(() => {
    wanted = true;
    void run();
  });
  return () => {
    stopped = true;
  };
}

/** Publishes the keyring file. With `adopt`, a published keyring that differs replaces this host's keyring instead. */
async function publish(
  { gossip, root }: PublishSettings,
  adopt: HostGossip['adoptKeys'] | undefined,
  log: Log,
): Promise<void> {
  const keyring = await readFile(gossip.keyringFile);
  const { client, close } = await openClient(masterFiles(root).adminKubeconfig, 'hyperedge', { clock, random, log });
  try {
    const published = adopt === undefined ? undefined : await publishedKeys(client);
    if (adopt === undefined || published === undefined || published.join() === keysIn(keyring.toString()).join())
      await write(client, keyring.toString('base64'));
    else {
      await adopt(published.map((key) => Buffer.from(key, 'base64')));
      log.info('gossip keyring replaced by the published one', { file: gossip.keyringFile });
    }
  } finally {
    await close();
  }
}

/** Keys in the published keyring; undefined if no valid keyring is published. */
async function publishedKeys(client: ApiClient): Promise<readonly string[] | undefined> {
  const { namespace, name } = KEYRING_SECRET;
  try {
    const { data } = await client.resource(resources.secrets).get(name, namespace);
    const keys = keysIn(Buffer.from(data?.[KEYRING_FIELD] ?? '', 'base64').toString());
    return keys.length > 0 ? keys : undefined;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Keys in base64. The first key encrypts. */
function keysIn(text: string): readonly string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}

async function write(client: ApiClient, keyring: string): Promise<void> {
  const secrets = client.resource(resources.secrets);
  const { namespace, name } = KEYRING_SECRET;
  const data = { [KEYRING_FIELD]: keyring };
  let present: Secret;
  try {
    present = await secrets.get(name, namespace);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    await secrets.create({ metadata: { namespace, name }, type: KEYRING_TYPE, data });
    return;
  }
  if (present.data?.[KEYRING_FIELD] !== keyring) await secrets.update({ ...present, data });
}
