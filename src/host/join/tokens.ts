/** `hyperedge token`: bootstrap tokens for joining hosts. */

import { setTimeout as wait } from 'node:timers/promises';
import type { Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, ignore } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient } from '../../client/index.ts';
import {
  CLUSTER_INFO,
  expiresAtMs,
  SIGNATURE_PREFIX,
  TOKEN_NAMESPACE,
  TOKEN_TYPE,
  tokenField,
} from '../../controllers/identity/bootstrap-tokens/plan.ts';
import { masterFiles } from '../../pki/index.ts';
import type { Role } from '../config/bootstrap.ts';
import { readReferenced } from '../config/files.ts';
import { readMasterConfig } from '../config/master-config.ts';
import { canonicalRoot } from '../config/paths.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { etcdAccess } from '../store/access.ts';
import { caHashOf, certificatesOf } from './discovery.ts';
import { readMasterKeys, SEALED_FIELD, SEALED_TYPE, seal, sealedName } from './sealed-keys.ts';
import { groupsOf, newToken, parseRoles, rolesOf, type Token } from './token-format.ts';

/** Maximum lifetime of the encrypted keys, as in kubeadm. */
const MAX_SEALED_MS = 2 * 3_600_000;
const NODE_TTL_MS = 24 * 3_600_000;
const MASTER_TTL_MS = 3_600_000;
const SIGNED_WITHIN_MS = 10_000;
const STORE_MS = 5_000;
const RBAC = 'rbac.authorization.k8s.io';

export interface CreatedToken {
  readonly token: string;
  readonly roles: readonly Role[];
  readonly expires: string;
  readonly caHash: string;
  readonly server: string;
  /** The command to run on the new host. */
  readonly command: string;
  readonly warnings: readonly string[];
}

export interface TokenRequest {
  readonly root: string | undefined;
  readonly roles: string;
  readonly ttlMs: number | undefined;
  readonly description: string | undefined;
}

/** Creates a token. Throws CodedErrors that name the flag, the file or the field, and ApiErrors. */
export async function createToken({ root, roles: roleText, ttlMs, description }: TokenRequest): Promise<CreatedToken> {
  const roles = parseRoles(roleText, '--roles');
  const sealing = roles.includes('master') || roles.includes('etcd');
  if (roles.includes('etcd') && !roles.includes('master'))
    throw new CodedError(
      'bad-roles',
      '--roles: a store member without the master role cannot join by token; add master',
    );
  const lifeMs = ttlMs ?? (sealing ? MASTER_TTL_MS : NODE_TTL_MS);
  if (sealing && lifeMs > MAX_SEALED_MS)
    throw new CodedError('bad-ttl', '--ttl: a token for masters carries the cluster’s keys; give at most 2h');
  const settings = await loadSettings({ root });
  const server = await joinUrl(settings);
  const hashes = certificatesOf(await readReferenced(masterFiles(settings.root).caBundle, 'token create')).map(
    caHashOf,
  );
  const caHash = hashes[0];
  if (caHash === undefined) throw new CodedError('bad-authority', 'ca-bundle.crt holds no certificate; restore it');
  const token = newToken(sealing, (length) => random.bytes(length));
  const expires = timestamp(clock.nowMs() + lifeMs);
  return withAdmin(settings.root, async (client) => {
    const secret = await client.resource(resources.secrets).create(tokenSecret(token, roles, expires, description));
    try {
      const warnings = sealing ? await createSealed(client, settings, token, secret) : [];
      await untilSigned(client, token);
      const command = `hyperedge install --join ${server} --token ${token.text} --ca-hash ${caHash}`;
      return { token: token.text, roles, expires, caHash, server, command, warnings };
    } catch (error) {
      await removeToken(client, token.id).catch(ignore('the first error is reported, and an unused token expires'));
      throw error;
    }
  });
}

/** The URL under which other hosts reach this master. */
async function joinUrl({ paths, nodeIpIsBridge, bootstrapFile }: Settings): Promise<string> {
  const { masterPublicURL } = await readMasterConfig(paths.masterConfig);
  if (nodeIpIsBridge || masterPublicURL === undefined) {
    throw new CodedError(
      'bad-config',
      `${bootstrapFile}: node.ip: this host has no address that others reach; give one`,
    );
  }
  return masterPublicURL.replace(/\/$/, '');
}

function tokenSecret(
  token: Token,
  roles: readonly Role[],
  expiration: string,
  description: string | undefined,
): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${token.id}`, namespace: TOKEN_NAMESPACE },
    type: TOKEN_TYPE,
    stringData: {
      ...(description === undefined ? {} : { description }),
      'token-id': token.id,
      'token-secret': token.stored,
      expiration,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': groupsOf(roles).join(),
    },
  };
}

/**
 * Creates the Secret with the encrypted keys and the permission to read it. The token's Secret owns both, so they are
 * deleted with it.
 */
async function createSealed(client: ApiClient, settings: Settings, token: Token, owner: Secret): Promise<string[]> {
  const store = await storeMembers(settings);
  const keys = await readMasterKeys(settings, store);
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'Secret', name: owner.metadata?.name ?? '', uid: owner.metadata?.uid ?? '' },
  ];
  const name = sealedName(token.id);
  const metadata = { name, namespace: TOKEN_NAMESPACE, ownerReferences };
  await client.resource(resources.secrets).create({
    metadata,
    type: SEALED_TYPE,
    data: { [SEALED_FIELD]: seal(keys, token).toString('base64') },
  });
  await client.resource(resources.roles).create({
    metadata,
    rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get'] }],
  });
  await client.resource(resources.roleBindings).create({
    metadata,
    roleRef: { apiGroup: RBAC, kind: 'Role', name },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: `system:bootstrap:${token.id}` }],
  });
  const members = Object.keys(store.members ?? {}).length;
  return members % 2 === 1
    ? [
        `the store has ${members} member${members === 1 ? '' : 's'}; one more stays a learner and a second one makes both voters: join two hosts`,
      ]
    : [];
}

async function storeMembers({ root, etcd, storage }: Settings): Promise<{
  readonly members: Readonly<Record<string, string>> | undefined;
  readonly storeToken: string | undefined;
}> {
  if (storage !== undefined) return { members: undefined, storeToken: undefined };
  const admin = (await etcdAccess({ root })).open();
  try {
    const found = await admin.members(STORE_MS);
    const started = found.filter(({ name, peerUrls }) => name !== '' && peerUrls.length > 0);
    return {
      members: Object.fromEntries(started.map(({ name, peerUrls }) => [name, peerUrls[0] ?? ''])),
      storeToken: etcd?.token,
    };
  } finally {
    admin.close();
  }
}

/**
 * Waits until the token has signed cluster-info. The signer works asynchronously; before it has finished, the printed
 * command would fail.
 */
async function untilSigned(client: ApiClient, { id }: Token): Promise<void> {
  const maps = client.resource(resources.configMaps);
  for (const beganMs = clock.monotonicMs(); ; ) {
    try {
      const { data } = await maps.get(CLUSTER_INFO.name, CLUSTER_INFO.namespace);
      if (data?.[SIGNATURE_PREFIX + id] !== undefined) return;
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
    if (clock.monotonicMs() - beganMs > SIGNED_WITHIN_MS) {
      throw new CodedError(
        'not-signed',
        'kube-public/cluster-info: not signed with the new token in time; see hyperedge master-logs controllers controllers',
      );
    }
    await wait(100);
  }
}

export interface ListedToken {
  readonly id: string;
  readonly roles: readonly string[];
  /** RFC 3339; undefined if the token does not expire. */
  readonly expires: string | undefined;
  /** Seconds left; 0 if expired. */
  readonly ttlSeconds: number | undefined;
  readonly usages: readonly string[];
  readonly description: string;
}

/** Lists tokens without their secrets. */
export function listTokens(root: string | undefined): Promise<ListedToken[]> {
  return withAdmin(root, async (client) => {
    const secrets = await client
      .resource(resources.secrets)
      .list({ namespace: TOKEN_NAMESPACE, fieldSelector: `type=${TOKEN_TYPE}` });
    return secrets.items.map((secret) => {
      const ends = expiresAtMs(secret);
      return {
        id: tokenField(secret, 'token-id'),
        roles: rolesOf(tokenField(secret, 'auth-extra-groups').split(',')),
        expires: ends === undefined ? undefined : new Date(ends).toISOString(),
        ttlSeconds: ends === undefined ? undefined : Math.max(0, Math.round((ends - clock.nowMs()) / 1000)),
        usages: ['authentication', 'signing'].filter(
          (usage) => tokenField(secret, `usage-bootstrap-${usage}`) === 'true',
        ),
        description: tokenField(secret, 'description'),
      };
    });
  });
}

/** Deletes a token. `text`: its id or the whole token. Throws CodedError 'not-found'. */
export function revokeToken(root: string | undefined, text: string): Promise<string> {
  const [, id] = /^([a-z0-9]{6})(?:\.[a-z0-9]+)?$/.exec(text) ?? [];
  if (id === undefined) throw new CodedError('bad-token', `${text}: is not a token id; see hyperedge token list`);
  return withAdmin(root, async (client) => {
    if (!(await removeToken(client, id)))
      throw new CodedError('not-found', `token ${id} does not exist; see hyperedge token list`);
    return id;
  });
}

/** Deletes a token. Resolves with false if it did not exist. */
async function removeToken(client: ApiClient, id: string): Promise<boolean> {
  const secrets = client.resource(resources.secrets);
  const removed = async (name: string): Promise<boolean> => {
    try {
      await secrets.delete(name, TOKEN_NAMESPACE);
      return true;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return false;
      throw error;
    }
  };
  await removed(sealedName(id));
  return removed(`bootstrap-token-${id}`);
}

async function withAdmin<T>(root: string | undefined, use: (client: ApiClient) => Promise<T>): Promise<T> {
  const { adminKubeconfig } = masterFiles(await canonicalRoot(root));
  const opened = await openClient(adminKubeconfig, 'hyperedge', { clock, random, log: silentLog });
  try {
    return await use(opened.client);
  } finally {
    await opened.close();
  }
}
