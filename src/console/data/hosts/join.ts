/**
 * Creates tokens for new nodes, with the user's right to create secrets in `kube-system`. Tokens for masters contain
 * keys that no API serves, so the console cannot create them. Secrets of existing tokens are never read.
 */
import type { ConfigMap } from '../../../api/generated/core/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { collectionPath, objectPath, query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { CONFIG_MAPS, SECRETS } from '../api/resources.ts';
import { caHash } from './spki.ts';

export const TOKEN_NAMESPACE = 'kube-system';
const TOKEN_TYPE = 'bootstrap.kubernetes.io/token';
const NAME_PREFIX = 'bootstrap-token-';
const NODE_GROUP = 'system:bootstrappers:hyperedge:node';
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
const SIGNATURE_POLLS = 20;
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

export interface JoinContext {
  readonly api: Api;
  readonly nowMs: () => number;
  readonly bytes: (length: number) => Uint8Array;
  readonly sleep: (ms: number) => Promise<void>;
}

export interface JoinCommand {
  readonly tokenId: string;
  readonly expires: string;
  readonly server: string;
  /** The command, which contains the secret. */
  readonly command: string;
}

export const HOURS = [1, 4, 24] as const;

/** Creates a token for nodes, and the command to run on the new host. */
export async function createJoinCommand(context: JoinContext, hours: number): Promise<JoinCommand> {
  const { api, nowMs } = context;
  // All data is read before the token is created, so that a failed read leaves no unused token.
  const { server, pem } = clusterOf(await readClusterInfo(api));
  const hash = await caHash(pem);
  const id = randomText(6, context);
  const secret = randomText(16, context);
  const expires = timestamp(nowMs() + hours * 3_600_000);
  await api.json(collectionPath(SECRETS, TOKEN_NAMESPACE), {
    method: 'POST',
    body: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: NAME_PREFIX + id, namespace: TOKEN_NAMESPACE },
      type: TOKEN_TYPE,
      stringData: {
        description: 'created in the console',
        'token-id': id,
        'token-secret': secret,
        expiration: expires,
        'usage-bootstrap-authentication': 'true',
        'usage-bootstrap-signing': 'true',
        'auth-extra-groups': NODE_GROUP,
      },
    },
  });
  await untilSigned(context, id);
  const command = `hyperedge install --join ${server} --token ${id}.${secret} --ca-hash ${hash}`;
  return { tokenId: id, expires, server, command };
}

async function untilSigned({ api, sleep }: JoinContext, id: string): Promise<void> {
  for (let poll = 0; poll < SIGNATURE_POLLS; poll++) {
    if (Object.hasOwn((await readClusterInfo(api)).data ?? {}, `jws-kubeconfig-${id}`)) return;
    await sleep(500);
  }
  throw new Error(`token ${id}: kube-public/cluster-info is not signed with it; check that the controllers run`);
}

const readClusterInfo = (api: Api): Promise<ConfigMap> =>
  api.json<ConfigMap>(objectPath(CONFIG_MAPS, 'cluster-info', 'kube-public'));

/** Server and CA in the published kubeconfig. They become part of a command, so they are validated. */
function clusterOf({ data }: ConfigMap): { readonly server: string; readonly pem: string } {
  const text = data?.['kubeconfig'] ?? '';
  const [, server = ''] = /"?server"?:\s*"?(https:\/\/[\w.:[\]-]+)\/?"?/.exec(text) ?? [];
  const [, authority = ''] = /"?certificate-authority-data"?:\s*"?([A-Za-z0-9+/=]+)"?/.exec(text) ?? [];
  if (server === '' || authority === '')
    throw new Error('kube-public/cluster-info: has no server or no authority; run hyperedge token create on a master');
  return { server, pem: atob(authority) };
}

/** Reason why other hosts cannot reach the address; undefined if they can. */
export function addressProblem(server: string): string | undefined {
  const { hostname } = new URL(server);
  return /^(?:localhost|127\.|\[::1\])/.test(hostname)
    ? `${server} is the address of the host itself. Give the master an address (node.ip) that other hosts reach.`
    : undefined;
}

/**
 * Random text. Bytes at or above the largest multiple of the alphabet's size are dropped, so that all characters are
 * equally likely.
 */
function randomText(length: number, { bytes }: JoinContext): string {
  const limit = 256 - (256 % ALPHABET.length);
  let text = '';
  while (text.length < length)
    for (const byte of bytes(length * 2))
      if (byte < limit && text.length < length) text += ALPHABET[byte % ALPHABET.length];
  return text;
}

export interface ListedToken {
  readonly id: string;
  readonly created: string;
}

/** Existing tokens, read as metadata only. */
export async function listTokens(api: Api): Promise<readonly ListedToken[]> {
  const path = collectionPath(SECRETS, TOKEN_NAMESPACE) + query({ fieldSelector: `type=${TOKEN_TYPE}`, limit: 500 });
  const { items = [] } = await api.json<{ readonly items?: readonly KubeObject[] }>(path, { accept: METADATA_LIST });
  return items
    .map(({ metadata }) => ({
      id: (metadata?.name ?? '').slice(NAME_PREFIX.length),
      created: metadata?.creationTimestamp ?? '',
    }))
    .filter(({ id }) => /^[a-z0-9]{6}$/.test(id));
}

/** Deletes a token. Hosts that have joined stay in the cluster. */
export async function revokeToken(api: Api, id: string): Promise<void> {
  try {
    await api.json(objectPath(SECRETS, NAME_PREFIX + id, TOKEN_NAMESPACE), { method: 'DELETE' });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
