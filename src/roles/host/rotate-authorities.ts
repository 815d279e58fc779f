/** `hyperedge ca rotate`: exchanges the authorities and keys of this host's cluster, one phase at a time. */
import { CodedError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import {
  etcdFiles,
  masterFiles,
  type RotationPhase,
  rotateAuthority,
  rotateServiceAccountKeys,
} from '../../io/pki/index.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { issueCertificates, ownsStore } from './issue-certificates.ts';
import { openTrustedTime } from './trusted-time.ts';

export const SIGNERS = ['cluster', 'etcd', 'front-proxy', 'service-accounts'] as const;
export type Signer = (typeof SIGNERS)[number];

export interface Rotated {
  /** Certificates and kubeconfigs that were written. */
  readonly issued: readonly string[];
  /** Files that every other master needs before the next phase. */
  readonly shared: readonly string[];
}

/** Components follow the files that change. Throws CodedErrors of one line with file and fix. */
export async function rotateAuthorities(
  root: string | undefined,
  phase: RotationPhase,
  signers: readonly Signer[],
): Promise<Rotated> {
  const settings = await loadSettings({ root });
  if (!settings.roles.has('master'))
    throw new CodedError('not-a-master', 'ca rotate: this host is no master; run it on a master');
  const time = await openTrustedTime(settings.paths.timeFloor, silentLog);
  const nowMs = time.nowMs();
  const shared: string[] = [];
  for (const signer of signers) {
    if (signer === 'etcd' && !ownsStore(settings)) continue;
    shared.push(...(await rotate(settings, signer, phase, nowMs)));
  }
  const issued: string[] = [];
  await issueCertificates(settings, {
    nowMs,
    lifeMs: settings.certificateLifeMs,
    onIssued: (path) => void issued.push(path),
  });
  return { issued, shared };
}

async function rotate({ root }: Settings, signer: Signer, phase: RotationPhase, nowMs: number): Promise<string[]> {
  const master = masterFiles(root);
  if (signer === 'service-accounts') {
    await rotateServiceAccountKeys(master, phase);
    return [master.serviceAccountsPrivateKey, master.serviceAccountsNextKey, master.serviceAccountsPublicKey];
  }
  const [files, commonName] = {
    cluster: [master.ca, 'openshift-signer'] as const,
    etcd: [etcdFiles(root).signer, 'etcd-signer'] as const,
    'front-proxy': [master.frontProxyCa, 'openshift-aggregator-front-proxy'] as const,
  }[signer];
  await rotateAuthority(files, { commonName, phase, nowMs });
  const every = (path: string): string => path.replace(/(\.crt|\.key)$/, '*$1');
  return [every(files.cert), every(files.key)];
}
