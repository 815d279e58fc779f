/**
 * Authorities and service account keys that a rotation has changed, from one master to the others: in a Secret, sealed
 * with each private key of the cluster's authority that a master may hold at present.
 */
import { createHash, createPublicKey } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Secret } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import { masterFiles, predecessorOf, successorOf, writeWhole } from '../../io/pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { authorityFiles, type SealingSecret, seal, unseal } from '../join/sealed-keys.ts';
import { systemClock as clock } from '../process.ts';

const SECRET = { namespace: 'kube-system', name: 'hyperedge-authorities' } as const;
const TYPE = 'hyperedge.dev/sealed-authorities';
const GENERATION = 'generation';
/** Annotation of the Secret with the generation that a master has. */
const APPLIED = 'applied.hyperedge.dev/';
const MASTER_LABEL = 'node-role.kubernetes.io/master';
const CHECK_MS = 20_000;

const generationFile = ({ root }: Settings): string =>
  join(dirname(masterFiles(root).ca.key), 'authorities.generation');

/** The private keys of the cluster's authority on this host: the present one, its successor and its predecessor. */
export async function sealingSecrets({ root }: Settings): Promise<SealingSecret[]> {
  const { ca } = masterFiles(root);
  const texts = await Promise.all(
    [ca, successorOf(ca), predecessorOf(ca)].map(({ key }) => readFile(key, 'utf8').catch(() => undefined)),
  );
  return texts.flatMap((secret) => {
    if (secret === undefined) return [];
    const spki = createPublicKey(secret).export({ type: 'spki', format: 'der' });
    return [{ id: createHash('sha256').update(spki).digest('hex').slice(0, 32), secret }];
  });
}

/** After a phase: `secrets` are those before and after it. */
export async function publishAuthorities(
  client: ApiClient,
  settings: Settings,
  secrets: readonly SealingSecret[],
  nowMs: number,
): Promise<void> {
  const files: Record<string, string> = {};
  for (const path of authorityFiles(settings)) {
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text !== undefined) files[relative(settings.root, path)] = text;
  }
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

/** Beside the sealed one, for administrators. */
const GENERATION_ANNOTATION = 'hyperedge.dev/generation';

/** Names of other masters that do not have what was published last. */
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
  return Number(await readFile(generationFile(settings), 'utf8').catch(() => '0'));
}

/** Takes what another master has published. True: files of this host have changed. Throws CodedErrors of the files. */
export async function adoptAuthorities(client: ApiClient, settings: Settings): Promise<boolean> {
  const secret = await published(client);
  const found = (await sealingSecrets(settings)).find(({ id }) => secret?.data?.[id] !== undefined);
  if (secret === undefined) return false;
  if (found === undefined)
    throw new CodedError(
      'bad-authority',
      'the published authorities are not sealed for this master, which missed a whole rotation; run "hyperedge reset" and join again',
    );
  const { files } = unseal(Buffer.from(secret.data?.[found.id] ?? '', 'base64'), found);
  const generation = Number(files[GENERATION]);
  const own = await ownGeneration(settings);
  // An older Secret that was put back must not undo a rotation.
  if (!Number.isSafeInteger(generation) || generation < own) return false;
  if (generation > own) {
    for (const path of authorityFiles(settings)) {
      const text = files[relative(settings.root, path)];
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      if (text === undefined) await rm(path, { force: true });
      else await writeWhole(path, text, { durable: true });
    }
    await writeWhole(generationFile(settings), `${generation}\n`, { durable: true });
  }
  const applied = { [APPLIED + settings.nodeName]: String(generation) };
  if (secret.metadata?.annotations?.[APPLIED + settings.nodeName] !== String(generation))
    await client
      .resource(resources.secrets)
      .patch(SECRET.name, SECRET.namespace, 'merge', { metadata: { annotations: applied } });
  return generation > own;
}

export interface FollowAuthorities {
  readonly settings: () => Settings;
  /** A client of the administrator, for one round. */
  openAdmin(): Promise<{ readonly client: ApiClient; close(): Promise<void> }>;
  /** Certificates are to be issued again. */
  readonly onAdopted: () => Promise<void>;
  readonly log: Log;
}

/** On a master. Returns the function that stops it. */
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
          if (message !== failure && !isExpected) log.warn('authorities not followed; retrying', { error: message });
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
