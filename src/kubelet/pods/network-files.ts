/**
 * Generates resolv.conf and hosts files of a pod. Source: pkg/kubelet/network/dns, pkg/kubelet/kubelet_pods.go
 * managedHostsFileContent.
 */
import type { Pod } from '../../api/generated/core/v1.ts';
import type { SandboxConfig } from '../../runtime/port.ts';

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

/** glibc's limits. Upstream truncates to them. */
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
  // Options by name, in order of first appearance.
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

const overrideOf = (pod: Pod): string => pod.spec?.hostnameOverride ?? '';

/** Host name of the pod: its override, its `hostname` or its name, truncated to the kernel's limit. */
export function podHostname(pod: Pod, nodeHostname: string): string {
  if (pod.spec?.hostNetwork === true) return nodeHostname;
  const override = overrideOf(pod);
  if (override !== '') return override;
  const wanted = pod.spec?.hostname ?? '';
  const name = wanted === '' ? (pod.metadata?.name ?? '') : wanted;
  return name.slice(0, MAX_LABEL).replace(/[-.]+$/, '');
}

const MAX_LABEL = 63;
/** Linux limit of the host name in uname(2). */
const MAX_KERNEL_HOSTNAME = 64;

/**
 * Host name for the kernel: the short name, or the FQDN if the pod sets `setHostnameAsFQDN`. Throws when it exceeds the
 * kernel's limit.
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

/** Host name of a pod with its domain. A pod without a subdomain has no FQDN, so its short name is returned. */
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
