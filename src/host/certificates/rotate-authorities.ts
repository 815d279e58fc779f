/** `hyperedge ca rotate`: rotates the authorities and keys of this host's cluster, one phase at a time. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { CodedError, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import {
  etcdFiles,
  masterFiles,
  type PairFiles,
  predecessorOf,
  type RotationPhase,
  rotateAuthority,
  rotateServiceAccountKeys,
} from '../../pki/index.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { openTrustedTime } from '../run/trusted-time.ts';
import { issueCertificates, ownsStore } from './issue-certificates.ts';
import { mastersBehind, publishAuthorities, sealingSecrets } from './shared-authorities.ts';

export const SIGNERS = ['cluster', 'etcd', 'front-proxy', 'service-accounts'] as const;
export type Signer = (typeof SIGNERS)[number];

export interface Rotated {
  /** Certificates and kubeconfigs that were written. */
  readonly issued: readonly string[];
  /** Whether a rotation was in progress. False if the phase `finish` had no rotation to complete. */
  readonly wasInProgress: boolean;
}

/**
 * Performs one phase of a rotation on this host and publishes the result to the other masters. Components reload the
 * changed files. Throws CodedErrors of one line with file and fix.
 */
export async function rotateAuthorities(
  root: string | undefined,
  phase: RotationPhase,
  signers: readonly Signer[],
  force: boolean,
  onStep: (text: string) => void,
): Promise<Rotated> {
  const settings = await loadSettings({ root });
  if (!settings.roles.has('master'))
    throw new CodedError('not-a-master', 'ca rotate: this host is not a master; run it on a master');
  const time = await openTrustedTime(settings.paths.timeFloor, silentLog);
  const nowMs = time.nowMs();
  const open = () =>
    openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge', { clock, random, log: silentLog });
  await requireFollowed(settings, phase, force, open);
  const secrets = await sealingSecrets(settings);
  const predecessors = await Promise.all(signers.map((signer) => hasPredecessor(settings.root, signer)));
  const wasInProgress = phase !== 'finish' || predecessors.includes(true);
  // A repeated `finish` phase only publishes the files again, so no steps are reported.
  const step = wasInProgress ? onStep : (): void => {};
  for (const signer of signers) {
    if (signer === 'etcd' && !ownsStore(settings)) continue;
    await rotate(settings, signer, phase, nowMs);
    step(`phase ${phase} of ${signer} is done`);
  }
  const issued: string[] = [];
  await issueCertificates(settings, {
    nowMs,
    lifeMs: settings.certificateLifeMs,
    onIssued: (path) => void issued.push(path),
  });
  step(`${issued.length} certificates and kubeconfigs are written`);
  const after = (await sealingSecrets(settings)).filter(({ id }) => secrets.every((before) => before.id !== id));
  const { client, close } = await open();
  try {
    await publishAuthorities(client, settings, [...secrets, ...after], nowMs);
    step('the other masters can fetch the authorities');
  } catch (error) {
    throw new CodedError(
      'unreachable',
      `ca rotate: the phase is done on this host and not published to other masters (${messageOf(error)}); run it again when the API server answers`,
      { cause: error },
    );
  } finally {
    await close();
  }
  return { issued, wasInProgress };
}

/**
 * Throws CodedError 'masters-behind' if a master has not adopted the files of the previous phase. After the next phase,
 * the certificates of such a master would be rejected.
 */
async function requireFollowed(
  { nodeName }: Settings,
  phase: RotationPhase,
  force: boolean,
  open: () => ReturnType<typeof openClient>,
): Promise<void> {
  if (phase === 'new-ca' || force) return;
  const { client, close } = await open();
  try {
    const behind = await mastersBehind(client, nodeName);
    if (behind.length === 0) return;
    throw new CodedError(
      'masters-behind',
      `ca rotate: ${behind.join(', ')}: the last phase has not reached these masters; start them and wait a minute, or give --force and join them again later`,
    );
  } finally {
    await close();
  }
}

async function rotate({ root }: Settings, signer: Signer, phase: RotationPhase, nowMs: number): Promise<void> {
  const master = masterFiles(root);
  if (signer === 'service-accounts') {
    await rotateServiceAccountKeys(master, phase);
    return;
  }
  const [files, commonName] = authorityOf(root, signer);
  await rotateAuthority(files, { commonName, phase, nowMs });
}

function authorityOf(root: string, signer: Exclude<Signer, 'service-accounts'>): readonly [PairFiles, string] {
  const master = masterFiles(root);
  return {
    cluster: [master.ca, 'openshift-signer'] as const,
    etcd: [etcdFiles(root).signer, 'etcd-signer'] as const,
    'front-proxy': [master.frontProxyCa, 'openshift-aggregator-front-proxy'] as const,
  }[signer];
}

/** Whether a former authority or key of this signer is still trusted. */
async function hasPredecessor(root: string, signer: Signer): Promise<boolean> {
  if (signer !== 'service-accounts') return existsSync(predecessorOf(authorityOf(root, signer)[0]).cert);
  const accepted = await readFile(masterFiles(root).serviceAccountsPublicKey, 'utf8');
  return accepted.split('-----BEGIN').length > 2;
}
