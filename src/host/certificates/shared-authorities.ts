/**
 * Distributes rotated authorities and service account keys from one master to the others: in a Secret, encrypted with
 * each private key of the cluster's authority that a master may currently have.
 */

import { createPublicKey } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import {
  loadAuthority,
  masterFiles,
  type PairFiles,
  predecessorOf,
  readIfPresent,
  removePair,
  successorOf,
  writePair,
  writeWhole,
} from '../../pki/index.ts';
import { sha256Hex } from '../../wire/digest.ts';
import type { Settings } from '../config/settings.ts';
import { type SealingSecret, seal, sharedAuthorities, unseal } from '../join/sealed-keys.ts';
import { systemClock as clock } from '../process/process.ts';

const SECRET = { namespace: 'kube-system', name: 'hyperedge-authorities' } as const;
const TYPE = 'hyperedge.dev/sealed-authorities';
const GENERATION = 'generation';
/** Prefix of annotations of the Secret. Each annotation names a master and the generation that it has adopted. */
const APPLIED = 'applied.hyperedge.dev/';
const MASTER_LABEL = 'node-role.kubernetes.io/master';
const CHECK_MS = 20_000;

const generationFile = ({ root }: Settings): string =>
  join(dirname(masterFiles(root).ca.key), 'authorities.generation');

/** Private keys of the cluster's authority on this host: the current one, its successor and its predecessor. */
export async function sealingSecrets({ root }: Settings): Promise<SealingSecret[]> {
  const { ca } = masterFiles(root);
  const found = await Promise.all(
    [ca, successorOf(ca), predecessorOf(ca)].map(async ({ key }) => ({ key, secret: await readIfPresent(key) })),
  );
  return found.flatMap(({ key, secret }) => {
    if (secret === undefined) return [];
    try {
      const spki = createPublicKey(secret).export({ type: 'spki', format: 'der' });
      return [{ id: sha256Hex(spki).slice(0, 32), secret }];
    } catch (error) {
      throw new CodedError('bad-authority', `${key} holds no readable private key; restore it`, { cause: error });
    }
  });
}

/**
 * Publishes the files after a phase of a rotation. `secrets`: keys before and after the phase, because a master may
 * have either.
 */
export async function publishAuthorities(
  client: ApiClient,
  settings: Settings,
  secrets: readonly SealingSecret[],
  nowMs: number,
): Promise<void> {
  const files = await readAuthorityFiles(settings);
  const generation = String(Math.max(nowMs, (await ownGeneration(settings)) + 1));
  const payload = { files: { ...files, [GENERATION]: generation }, members: undefined, storeToken: undefined };
  const data = Object.fromEntries(secrets.map((secret) => [secret.id, seal(payload, secret).toString('base64')]));
  const all = client.resource(resources.secrets);
  const present = await published(client);
  const metadata = { ...present?.metadata, ...SECRET, annotations: { [GENERATION_ANNOTATION]: generation } };
  if (present === undefined) await all.create({ metadata, type: TYPE, data });
  else await all.update({ ...present, metadata, data });
  await writeWhole(generationFile(settings), `${generation}\n`, { durable: true });
}

/**
 * Contents of the authority files, by path relative to the root. An unreadable file or an incomplete pair is an error,
 * because other masters would remove files that are not published. Throws CodedErrors 'unreadable' and 'bad-authority'.
 */
async function readAuthorityFiles(settings: Settings): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  const master = masterFiles(settings.root);
  const pairs = sharedAuthorities(settings).flatMap((each) => [each, successorOf(each), predecessorOf(each)]);
  const serviceAccounts = { cert: master.serviceAccountsPublicKey, key: master.serviceAccountsPrivateKey };
  for (const { cert, key } of [...pairs, serviceAccounts]) {
    const [certText, keyText] = await Promise.all([readIfPresent(cert), readIfPresent(key)]);
    if ((certText === undefined) !== (keyText === undefined)) {
      const [missing, present] = certText === undefined ? [cert, key] : [key, cert];
      throw new CodedError(
        'bad-authority',
        `${missing}: the file is missing, but ${present} exists; restore the file or repeat the phase`,
      );
    }
    if (certText === undefined || keyText === undefined) continue;
    files[relative(settings.root, cert)] = certText;
    files[relative(settings.root, key)] = keyText;
  }
  const next = await readIfPresent(master.serviceAccountsNextKey);
  if (next !== undefined) files[relative(settings.root, master.serviceAccountsNextKey)] = next;
  if (files[relative(settings.root, master.ca.key)] === undefined)
    throw new CodedError('bad-authority', `${master.ca.key}: this host does not hold the key`);
  return files;
}

/** Annotation with the generation in clear text: the generation among the files is encrypted. */
const GENERATION_ANNOTATION = 'hyperedge.dev/generation';

/** Names of other masters that have not adopted the last published files. */
export async function mastersBehind(client: ApiClient, own: string): Promise<string[]> {
  const secret = await published(client);
  const annotations = secret?.metadata?.annotations ?? {};
  const generation = annotations[GENERATION_ANNOTATION];
  if (generation === undefined) return [];
  const { items } = await client.resource(resources.nodes).list({ labelSelector: MASTER_LABEL });
  return items
    .map(({ metadata }) => metadata?.name ?? '')
    .filter((name) => name !== own && annotations[APPLIED + name] !== generation);
}

async function published(client: ApiClient): Promise<Secret | undefined> {
  try {
    return await client.resource(resources.secrets).get(SECRET.name, SECRET.namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

async function ownGeneration(settings: Settings): Promise<number> {
  return Number((await readIfPresent(generationFile(settings))) ?? '0');
}

/**
 * Adopts the files that another master has published. Returns whether files of this host have changed. Throws
 * CodedErrors that name the invalid file.
 */
export async function adoptAuthorities(client: ApiClient, settings: Settings): Promise<boolean> {
  const secret = await published(client);
  const found = (await sealingSecrets(settings)).find(({ id }) => secret?.data?.[id] !== undefined);
  if (secret === undefined) return false;
  if (found === undefined)
    throw new CodedError(
      'bad-authority',
      'the published authorities are not sealed for this master, which missed a complete rotation; run "hyperedge reset" and join again',
    );
  const { files } = unseal(Buffer.from(secret.data?.[found.id] ?? '', 'base64'), found);
  const generation = Number(files[GENERATION]);
  const own = await ownGeneration(settings);
  // A lower generation is ignored: it comes from a backup of the Secret, which must not undo a rotation.
  if (!Number.isSafeInteger(generation) || generation < own) return false;
  if (generation > own) {
    await writeAuthorityFiles(settings, files);
    await writeWhole(generationFile(settings), `${generation}\n`, { durable: true });
  }
  const applied = { [APPLIED + settings.nodeName]: String(generation) };
  if (secret.metadata?.annotations?.[APPLIED + settings.nodeName] !== String(generation))
    await client
      .resource(resources.secrets)
      .patch(SECRET.name, SECRET.namespace, 'merge', { metadata: { annotations: applied } });
  return generation > own;
}

/**
 * Writes the published files. The order allows a repetition after a crash: first additional trusted authorities, then
 * signing authorities; replaced authorities are removed last. A file is removed only if the keys that replace it are
 * present. Throws CodedError 'bad-authority'.
 */
async function writeAuthorityFiles(settings: Settings, files: Readonly<Record<string, string>>): Promise<void> {
  const master = masterFiles(settings.root);
  const published = (path: string): string | undefined => {
    const name = relative(settings.root, path);
    return Object.hasOwn(files, name) ? files[name] : undefined;
  };
  const pairOf = ({ cert, key }: PairFiles): { certPem: string; keyPem: string } | undefined => {
    const [certPem, keyPem] = [published(cert), published(key)];
    if (certPem === undefined || keyPem === undefined) return undefined;
    try {
      loadAuthority(certPem, keyPem);
    } catch (error) {
      throw new CodedError('bad-authority', `published authorities: ${cert}: ${messageOf(error)}; rotate again`, {
        cause: error,
      });
    }
    return { certPem, keyPem };
  };
  if (pairOf(master.ca) === undefined)
    throw new CodedError('bad-authority', `published authorities: ${master.ca.key} is missing; rotate again`);
  for (const authority of sharedAuthorities(settings)) {
    const present = pairOf(authority);
    if (present === undefined) continue;
    await mkdir(dirname(authority.key), { recursive: true, mode: 0o700 });
    const [predecessor, successor] = [predecessorOf(authority), successorOf(authority)];
    const [old, next] = [pairOf(predecessor), pairOf(successor)];
    if (old !== undefined) await writePair(predecessor, old, { durable: true });
    // A changed pair is first written as successor, so that the next start can complete the replacement after a crash.
    if ((await readIfPresent(authority.key)) !== present.keyPem) await writePair(successor, present, { durable: true });
    await writePair(authority, present, { durable: true });
    if (next === undefined) await removePair(successor);
    else await writePair(successor, next, { durable: true });
    if (old === undefined) await removePair(predecessor);
  }
  const [signing, accepted] = [published(master.serviceAccountsPrivateKey), published(master.serviceAccountsPublicKey)];
  if (signing === undefined || accepted === undefined) return;
  const next = published(master.serviceAccountsNextKey);
  await writeWhole(master.serviceAccountsPublicKey, accepted, { mode: 0o644, durable: true });
  if (next !== undefined) await writeWhole(master.serviceAccountsNextKey, next, { durable: true });
  await writeWhole(master.serviceAccountsPrivateKey, signing, { durable: true });
  if (next === undefined) await rm(master.serviceAccountsNextKey, { force: true });
}

export interface FollowAuthorities {
  readonly settings: () => Settings;
  /** Opens a client of the administrator for one round. */
  openAdmin(): Promise<{ readonly client: ApiClient; close(): Promise<void> }>;
  /** Issues the certificates of this host again, with the adopted authorities. */
  readonly onAdopted: () => Promise<void>;
  readonly log: Log;
}

/** Adopts authorities that other masters publish, until the returned function is called. Runs on masters. */
export function followAuthorities({ settings, openAdmin, onAdopted, log }: FollowAuthorities): () => void {
  let stopped = false;
  let failure = '';
  const round = async (): Promise<void> => {
    const { client, close } = await openAdmin();
    try {
      if (await adoptAuthorities(client, settings())) {
        log.info('authorities of another master adopted');
        await onAdopted();
      }
      failure = '';
    } finally {
      await close();
    }
  };
  const next = (): void => {
    if (stopped) return;
    timer = clock.setTimer(CHECK_MS, () => {
      round()
        .catch((error: unknown) => {
          const message = messageOf(error);
          const isExpected = isApiError(error, 'ServiceUnavailable');
          if (message !== failure && !isExpected)
            log.warn('authorities of the cluster not read; retrying', { error: message });
          failure = message;
        })
        .finally(next);
    });
  };
  let timer = clock.setTimer(0, () => {});
  next();
  return () => {
    stopped = true;
    timer.cancel();
  };
}
