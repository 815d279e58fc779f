/**
 * The keyring of the gossip ring in the API, from which joining hosts have it, and the ring's members that the API
 * names.
 */
import { readFile } from 'node:fs/promises';
import type { Secret } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, InformerFactory } from '../../client/index.ts';
import { masterFiles } from '../../io/pki/index.ts';
import { openClient } from '../api-access.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock, systemRandom as random } from '../process.ts';
import type { HostGossip } from './gossip.ts';

/** Bootstrap tokens may read it: `system:gossip-keyring-reader` of the bootstrap policy. */
export const KEYRING_SECRET = { namespace: 'kube-system', name: 'hyperedge-gossip-keyring' } as const;
export const KEYRING_FIELD = 'keyring';
const KEYRING_TYPE = 'hyperedge.dev/gossip-keyring';
const RETRY_MS = 2_000;

/** Joins the masters that the API names: an address of the join may have been that of a host which is gone. */
export function joinMasters(gossip: Pick<HostGossip, 'learn'>, informers: InformerFactory): void {
  const learn = (slice: EndpointSlice): void => {
    if (slice.metadata?.namespace !== 'default' || slice.metadata.name !== 'kubernetes') return;
    const hosts = slice.endpoints.flatMap(({ addresses }) =>
      addresses.map((address) => (address.includes(':') ? `[${address}]` : address)),
    );
    if (hosts.length > 0) gossip.learn(hosts);
  };
  informers.informer(resources.endpointSlices).onChange({ added: learn, updated: learn });
}

type PublishSettings = Pick<Settings, 'gossip' | 'roles' | 'root'>;

/** A master publishes the keyring at its start and after each rotation. Returns the function that stops it. */
export function publishKeyring(
  settings: PublishSettings,
  { followKeys }: Pick<HostGossip, 'followKeys'>,
  log: Log,
): () => void {
  if (followKeys === undefined || !settings.roles.has('master')) return () => {};
  let stopped = false;
  let wanted = false;
  let running = false;
  const run = async (): Promise<void> => {
    if (running) return;
    running = true;
    while (wanted && !stopped) {
      wanted = false;
      try {
        await publish(settings, log);
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

async function publish({ gossip, root }: PublishSettings, log: Log): Promise<void> {
  const keyring = await readFile(gossip.keyringFile);
  const { client, close } = await openClient(masterFiles(root).adminKubeconfig, 'hyperedge', { clock, random, log });
  try {
    await write(client, keyring.toString('base64'));
  } finally {
    await close();
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
