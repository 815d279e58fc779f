/** The effective settings as fields of the bootstrap file, each with its origin. */

import { effectiveRouter } from '../../network/router/config/router.ts';
import { effectiveUpdates } from '../../openshift/updates/config/updates.ts';
import type { BootstrapFiles } from './bootstrap-files.ts';
import { effectiveEmbedded } from './embedded.ts';
import { withoutPassword } from './outbound.ts';
import type { Settings } from './settings.ts';

export interface EffectiveField {
  readonly path: readonly string[];
  readonly value: unknown;
  /** Source of the value: `file:line`, `default` or `detected`. */
  readonly origin: string;
}

const REDACTED = '(not shown)';
const DETECTED: ReadonlySet<string> = new Set(['node.name', 'node.ip', 'gossip.advertiseAddress']);

/** Effective settings with their origins, in the order of the documentation. Secrets are replaced. */
export function effectiveFields(settings: Settings, files: BootstrapFiles | undefined): EffectiveField[] {
  return valuesOf(settings).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const path = name.split('.');
    const fallback = DETECTED.has(name) ? 'detected' : 'default';
    return [{ path, value, origin: files?.origin(path) ?? fallback }];
  });
}

/**
 * Converts fields such as `{path: ['a', 'b'], value: 1}` to a nested document `{a: {b: 1}}`, as in a bootstrap file.
 */
export function nestedFields(fields: readonly EffectiveField[]): Record<string, unknown> {
  const document: Record<string, unknown> = { apiVersion: 'hyperedge.dev/v1', kind: 'Bootstrap' };
  for (const { path, value } of fields) {
    let at = document;
    for (const key of path.slice(0, -1)) {
      at[key] ??= {};
      at = at[key] as Record<string, unknown>;
    }
    at[path.at(-1) ?? ''] = value;
  }
  return document;
}

function valuesOf(settings: Settings): [string, unknown][] {
  const { network, podNetwork, ports, gossip, join, etcd, storage } = settings;
  const group = (name: string, values: object): [string, unknown][] =>
    Object.entries(values).map(([key, value]) => [`${name}.${key}`, value]);
  return [
    ['roles', [...settings.roles]],
    ...(join === undefined ? [] : group('join', { ...join, token: REDACTED })),
    ['masters', settings.masters],
    ['labels', settings.nodeLabels],
    ['taints', settings.nodeTaints],
    ['ipFamilies', settings.ipFamilies],
    ...group('podNetwork', podNetwork),
    ...group('proxy', {
      ...settings.proxy,
      httpProxy: settings.proxy.httpProxy && withoutPassword(settings.proxy.httpProxy),
      httpsProxy: settings.proxy.httpsProxy && withoutPassword(settings.proxy.httpsProxy),
    }),
    ['registries', Object.fromEntries(settings.registries)],
    ['hostTools', settings.hostTools],
    ['localVolumes.enabled', settings.localVolumes],
    ['serviceLoadBalancer.enabled', settings.serviceLoadBalancer.enabled],
    ['serviceLoadBalancer.addresses', settings.serviceLoadBalancer.addresses],
    ['scheduler.configFile', settings.schedulerConfigFile],
    ...effectiveEmbedded(settings.embedded),
    ...group('openshift', settings.openshift),
    ...effectiveRouter(settings.router),
    ...group('machineConfig', settings.machineConfig),
    ...effectiveUpdates(settings.updates),
    ['logLevel', settings.logLevel],
    ...group('node', {
      name: settings.nodeName,
      ip: settings.nodeIp,
      maxPods: settings.maxPods,
      systemReserved: settings.systemReserved,
    }),
    ...group('ports', ports),
    ...group('network', {
      clusterCIDR: network.clusterCidrs.join(),
      serviceCIDR: network.serviceCidrs.join(),
      clusterDomain: network.clusterDomain,
      bridge: network.bridge,
      nftTable: network.nftTable,
      proxyMode: network.proxyMode,
    }),
    ...group('gossip', {
      enabled: gossip.enabled,
      bindAddress: gossip.bindAddress,
      port: gossip.port,
      advertiseAddress: gossip.advertiseAddress,
      join: gossip.join,
      keyringFile: gossip.keyringFile,
    }),
    ...(etcd === undefined
      ? []
      : group('etcd', {
          initialCluster: Object.fromEntries(etcd.members.map(({ name, peerUrl }) => [name, peerUrl])),
          initialClusterState: etcd.state,
          initialClusterToken: etcd.token,
        })),
    ['etcd.restoreDamaged', settings.restoreDamaged],
    ...group('cgroup', settings.cgroup),
    ['secretsEncryption.provider', settings.secretsEncryption],
    ...(storage === undefined ? [] : group('storage', storage)),
  ];
}
