/**
 * The kubelet's certificates. On a master they are issued by the authority on its disk; on every other host the cluster
 * signs and renews them.
 */
import { access } from 'node:fs/promises';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { NodeName } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/index.ts';
import {
  CertificateManager,
  type CertificateNames,
  CLIENT_SIGNER,
  type Kubelet,
  SERVING_SIGNER,
  type ServingCertificate,
} from '../../kubelet/index.ts';
import {
  canonicalIp,
  createSelfSigned,
  kubeletCertificates,
  lifetimeFrom,
  masterFiles,
  nodeFiles,
} from '../../pki/index.ts';
import { readSecret } from '../config/files.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import type { TrustedTime } from '../run/trusted-time.ts';
import { followTrust } from './node-trust.ts';

export interface NodeCertificates {
  serving(): Promise<ServingCertificate>;
  /** Starts renewals. The kubelet is reloaded with each renewed certificate. */
  start(kubelet: Pick<Kubelet, 'reloadCertificate'>): void;
  stop(): Promise<void>;
}

/** Lifetime of the self-signed serving certificate that the kubelet uses until the cluster has signed one. */
const TEMPORARY_DAYS = 365;
const NO_NAMES: CertificateNames = { dns: [], ips: [] };

export async function nodeCertificates(
  { root, addresses, ports }: Pick<Settings, 'root' | 'addresses' | 'ports'>,
  nodeName: NodeName,
  client: ApiClient,
  time: Pick<TrustedTime, 'nowMs'>,
  log: Log,
): Promise<NodeCertificates> {
  const files = nodeFiles(root);
  const holdsAuthority = await exists(masterFiles(root).ca.key);
  let temporary: Promise<ServingCertificate> | undefined;
  const serving = async (): Promise<ServingCertificate> => {
    if (!holdsAuthority && !(await exists(files.serverCurrent))) {
      temporary ??= selfSigned(nodeName, addresses);
      return temporary;
    }
    const pem = await readSecret(files.serverCurrent, 'kubelet');
    return { cert: pem, key: pem };
  };
  if (holdsAuthority) return { serving, start: () => {}, stop: async () => {} };
  let managers: readonly CertificateManager[] = [];
  let trust: { stop(): void } | undefined;
  const manager = (
    role: 'client' | 'server',
    names: () => Promise<CertificateNames | undefined>,
    onRenewed: () => void,
  ): CertificateManager =>
    new CertificateManager({
      signerName: role === 'client' ? CLIENT_SIGNER : SERVING_SIGNER,
      files: kubeletCertificates(files, role, nodeName),
      client,
      names,
      onRenewed,
      clock,
      nowMs: time.nowMs,
      log,
    });
  return {
    serving,
    start: (kubelet) => {
      const reload = (): void => void kubelet.reloadCertificate();
      managers = [
        // The API client itself detects a renewal of its certificate file.
        manager(
          'client',
          async () => NO_NAMES,
          () => {},
        ),
        manager('server', () => namesOfNode(client, nodeName), reload),
      ];
      for (const each of managers) each.start();
      const onChanged = (): void => {
        reload();
        for (const each of managers) each.checkNow();
      };
      trust = followTrust({ root, nodeName, ports, client, onChanged, log });
    },
    stop: async () => {
      trust?.stop();
      await Promise.all(managers.map((each) => each.stop()));
    },
  };
}

/**
 * The Node's name and primary address, to which the API server connects. Other addresses are omitted: the approver
 * requires a proof of each name, and a connection proves only one address. Undefined until the Node is registered.
 */
async function namesOfNode(client: ApiClient, nodeName: NodeName): Promise<CertificateNames | undefined> {
  try {
    const { status } = await client.resource(resources.nodes).get(nodeName);
    const primary = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
    return primary === undefined ? undefined : { dns: [nodeName], ips: [canonicalIp(primary)] };
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'ServiceUnavailable')) return undefined;
    throw error;
  }
}

async function selfSigned(nodeName: NodeName, addresses: readonly string[]): Promise<ServingCertificate> {
  const names = { dns: [nodeName], ips: [...addresses] };
  const pair = await createSelfSigned(`${nodeName}-temporary`, names, lifetimeFrom(clock.nowMs(), TEMPORARY_DAYS));
  return { cert: pair.certPem, key: pair.keyPem };
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
