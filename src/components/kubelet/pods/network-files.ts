/**
 * resolv.conf and hosts of a pod. Source: pkg/kubelet/network/dns, pkg/kubelet/kubelet_pods.go managedHostsFileContent.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import type { SandboxConfig } from '../../../core/podplan/port.ts';

export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export function parseResolvConf(content: string): DnsConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: string[] = [];
  for (const line of content.split('\n')) {
    const [keyword, ...rest] = line.trim().split(/\s+/);
    if (keyword === 'nameserver' && rest[0] !== undefined) servers.push(rest[0]);
    else if (keyword === 'search') searches = rest.filter((domain) => domain !== '.');
    else if (keyword === 'options') options = rest;
  }
  return { servers, searches, options };
}

/** glibc's limits, which upstream enforces on what it writes. */
const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;

export function podDns(
  pod: Pod,
  host: DnsConfig,
  cluster: { readonly servers: readonly string[]; readonly domain: string },
): NonNullable<SandboxConfig['dns']> {
  const policy = pod.spec?.dnsPolicy ?? 'ClusterFirst';
  const clusterFirst =
    cluster.servers.length > 0 &&
    (policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && pod.spec?.hostNetwork !== true));
  let dns: DnsConfig;
  if (policy === 'None') dns = { servers: [], searches: [], options: [] };
  else if (clusterFirst) {
    const namespace = pod.metadata?.namespace ?? 'default';
    const { domain } = cluster;
    dns = {
      servers: cluster.servers,
      searches: unique([`${namespace}.svc.${domain}`, `svc.${domain}`, domain, ...host.searches]),
      options: ['ndots:5'],
    };
  } else dns = host;
  const extra = pod.spec?.dnsConfig;
  // By name, in the order of the first of each.
  const options = new Map(dns.options.map((option) => [option.split(':')[0] ?? '', option]));
  for (const option of extra?.options ?? []) {
    const name = option.name ?? '';
    options.set(name, option.value === undefined || option.value === '' ? name : `${name}:${option.value}`);
  }
  return {
    servers: unique([...dns.servers, ...(extra?.nameservers ?? [])]).slice(0, MAX_SERVERS),
    searches: unique([...dns.searches, ...(extra?.searches ?? [])]).slice(0, MAX_SEARCHES),
    options: [...options.values()],
  };
}

const unique = (values: readonly string[]): string[] => [...new Set(values)];

/** kubernetes-types stops before KEP-4762's field. */
const overrideOf = (pod: Pod): string =>
  (pod.spec as { hostnameOverride?: string } | undefined)?.hostnameOverride ?? '';

/** Host name of the pod: what overrides it, its own or its name, cut where the kernel would refuse it. */
export function podHostname(pod: Pod, nodeHostname: string): string {
  if (pod.spec?.hostNetwork === true) return nodeHostname;
  const override = overrideOf(pod);
  if (override !== '') return override;
  const wanted = pod.spec?.hostname ?? '';
  const name = wanted === '' ? (pod.metadata?.name ?? '') : wanted;
  return name.slice(0, MAX_LABEL).replace(/[-.]+$/, '');
}

const MAX_LABEL = 63;
/** Linux' limit of what uname(2) reports. */
const MAX_KERNEL_HOSTNAME = 64;

/**
 * What the kernel reports: the short name, or the whole one where the pod asks for it. Throws when that is too long for
 * the kernel.
 */
export function kernelHostname(pod: Pod, nodeHostname: string, clusterDomain: string): string {
  const hostname = podHostname(pod, nodeHostname);
  if (pod.spec?.hostNetwork === true || pod.spec?.setHostnameAsFQDN !== true) return hostname;
  const full = fullHostname(pod, hostname, clusterDomain);
  if (full.length > MAX_KERNEL_HOSTNAME) {
    throw new Error(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (${MAX_KERNEL_HOSTNAME} characters is the max, ${full.length} characters requested)`,
    );
  }
  return full;
}

/** Pods without a subdomain have only their short name. */
function fullHostname(pod: Pod, hostname: string, clusterDomain: string): string {
  const subdomain = pod.spec?.subdomain ?? '';
  return subdomain === '' || overrideOf(pod) !== ''
    ? hostname
    : `${hostname}.${subdomain}.${pod.metadata?.namespace}.svc.${clusterDomain}`;
}

export function hostsFile(
  pod: Pod,
  podIps: readonly string[],
  hostname: string,
  options: { readonly clusterDomain: string; readonly hostFile: string },
): string {
  const aliases = (pod.spec?.hostAliases ?? []).map((alias) => `${alias.ip}\t${(alias.hostnames ?? []).join('\t')}`);
  const aliasText = aliases.length === 0 ? '' : `\n# Entries added by HostAliases.\n${aliases.join('\n')}\n`;
  if (pod.spec?.hostNetwork === true) {
    return `# Kubernetes-managed hosts file (host network).\n${options.hostFile}${aliasText}`;
  }
  const full = fullHostname(pod, hostname, options.clusterDomain);
  const names = full === hostname ? hostname : `${full}\t${hostname}`;
  const lines = [
    '# Kubernetes-managed hosts file.',
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
    ...podIps.map((ip) => `${ip}\t${names}`),
  ];
  return `${lines.join('\n')}\n${aliasText}`;
}
