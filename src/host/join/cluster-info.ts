/** Requests of a joining host to the cluster, with its bootstrap credentials. */
import type { ConfigMap, Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/index.ts';
import { SETTINGS_MAP } from '../../controllers/identity/cluster-info/plan.ts';
import { KEYRING_FIELD, KEYRING_SECRET } from '../certificates/ring-keyring.ts';
import type { Role } from '../config/bootstrap.ts';
import { type ClusterSettings, parseClusterSettings } from '../config/joined.ts';
import { type MasterKeys, SEALED_FIELD, sealedName, unseal } from './sealed-keys.ts';
import { rolesOf, type Token } from './token-format.ts';

/** The API server's version. Throws CodedError 'unreachable' if its certificate or response is invalid. */
export async function serverVersion(client: ApiClient, server: string): Promise<string> {
  try {
    const { gitVersion } = await client.request<{ gitVersion?: string }>('GET', '/version');
    return gitVersion ?? '';
  } catch (error) {
    throw new CodedError('unreachable', `join.server: ${server}: ${messageOf(error)}`, { cause: error });
  }
}

/** Roles that the token grants, from its groups. Throws CodedError 'bad-token'. */
export async function fetchRoles(client: ApiClient, token: Token): Promise<Role[]> {
  try {
    const review = await client.request<{ status?: { userInfo?: { groups?: string[] } } }>(
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    );
    return rolesOf(review.status?.userInfo?.groups ?? []);
  } catch (error) {
    if (!isApiError(error, 'Unauthorized')) throw error;
    throw new CodedError(
      'bad-token',
      `join.token: token ${token.id} is refused; it has expired or was revoked: run "hyperedge token create" on a master`,
      { cause: error },
    );
  }
}

export interface ClusterInfo {
  readonly cluster: ClusterSettings;
  readonly apiServers: readonly string[];
}

/** Reads the settings of the cluster. Throws CodedError 'not-a-cluster'. */
export async function fetchClusterInfo(client: ApiClient, server: string): Promise<ClusterInfo> {
  const { namespace, name } = SETTINGS_MAP;
  let map: ConfigMap;
  try {
    map = await client.resource(resources.configMaps).get(name, namespace);
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Forbidden')) throw error;
    throw new CodedError(
      'not-a-cluster',
      `join.server: ${server}: config map ${namespace}/${name}: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
  const apiServers = (map.data?.['apiServers'] ?? '').split(',').filter((url) => /^https:\/\/[^/,=]+:\d+$/.test(url));
  return { cluster: parseClusterSettings(`${namespace}/${name}`, map.data ?? {}), apiServers };
}

/** The keyring of the gossip ring; undefined if the masters do not publish one. */
export async function receiveKeyring(client: ApiClient): Promise<string | undefined> {
  const { namespace, name } = KEYRING_SECRET;
  try {
    const { data } = await client.resource(resources.secrets).get(name, namespace);
    const content = data?.[KEYRING_FIELD];
    return content === undefined ? undefined : Buffer.from(content, 'base64').toString('utf8');
  } catch (error) {
    // Masters of an older release do not publish the keyring.
    if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) return undefined;
    throw error;
  }
}

/** Reads the keys that a joining master receives. Throws CodedError 'bad-token'. */
export async function receiveKeys(client: ApiClient, token: Token | undefined): Promise<MasterKeys> {
  const bad = (why: string, cause?: unknown): CodedError =>
    new CodedError(
      'bad-token',
      `join.token: ${why}; run "hyperedge token create --roles master,etcd,node" on a master`,
      {
        cause,
      },
    );
  if (token === undefined || !token.sealing) throw bad('carries no keys, which a master needs');
  let secret: Secret;
  try {
    secret = await client.resource(resources.secrets).get(sealedName(token.id), SETTINGS_MAP.namespace);
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Forbidden')) throw error;
    throw bad(`the keys sealed for token ${token.id} no longer exist`, error);
  }
  return unseal(Buffer.from(secret.data?.[SEALED_FIELD] ?? '', 'base64'), token);
}
