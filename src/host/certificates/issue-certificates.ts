/** Certificates and kubeconfigs of this host that are issued by authorities on its disk. */
import { hostname } from 'node:os';
import {
  type AlternativeNames,
  etcdFiles,
  type InstallContext,
  installEtcd,
  installMaster,
  installNode,
  loadIfPresent,
  masterFiles,
  nodeFiles,
  trustedBundle,
} from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { balancerUrl } from '../network/balancer-url.ts';

/**
 * Whether hyperedge manages the store on this host and its certificates. An external store has its own certificates.
 */
export const ownsStore = ({ roles, storage }: Pick<Settings, 'roles' | 'storage'>): boolean =>
  roles.has('etcd') && storage === undefined;

/**
 * Issues certificates that are missing, due for renewal, or no longer match the host's names and addresses. A repeated
 * call changes no file. Throws CodedErrors that name the file and a fix.
 */
export async function issueCertificates(settings: Settings, context: InstallContext): Promise<void> {
  const { root, roles } = settings;
  const names = namesOfHost(settings);
  const master = masterFiles(root);
  const localUrl = balancerUrl(settings);
  if (ownsStore(settings)) await installEtcd(etcdFiles(root), names, settings.nodeName, context);
  if (roles.has('master')) {
    await installMaster(
      {
        files: master,
        etcd: etcdFiles(root),
        serverNames: serverNames(settings, names),
        routerNames: [`*.${settings.openshift.domain}`, settings.openshift.domain],
        publicUrl: urlOf(settings.nodeIp, settings.ports.api),
        localUrl,
      },
      context,
    );
  }
  const authority = await loadIfPresent(master.ca);
  if (!roles.has('node') || authority === undefined) return;
  const trustedPem = await trustedBundle(master.ca);
  await installNode(
    { files: nodeFiles(root), authority, trustedPem, nodeName: settings.nodeName, names, serverUrl: localUrl },
    context,
  );
}

/** The DNS names and addresses of this host's servers. */
function namesOfHost(settings: Settings): AlternativeNames {
  return {
    dns: [...new Set(['localhost', settings.nodeName, hostname().toLowerCase()])],
    ips: [...new Set(['127.0.0.1', '::1', ...settings.addresses])],
  };
}

/** The names and cluster IP of the `kubernetes` Service. */
function serverNames(settings: Settings, host: AlternativeNames): AlternativeNames {
  const service = (name: string): string[] => [
    name,
    `${name}.default`,
    `${name}.default.svc`,
    `${name}.default.svc.${settings.network.clusterDomain}`,
  ];
  return {
    dns: [...new Set([...host.dns, ...service('kubernetes'), ...service('openshift')])],
    ips: [
      ...new Set([
        ...host.ips,
        settings.network.apiServiceIp,
        ...(settings.vip === undefined ? [] : [settings.vip.address]),
      ]),
    ],
  };
}

function urlOf(address: string, port: number): string {
  return `https://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
