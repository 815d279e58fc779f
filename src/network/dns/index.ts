/** DNS server of the cluster, part of every host process. */
export { createDnsServer, type DnsConfig, type DnsDeps, type DnsServer } from './dns-server.ts';
export { type DnsServiceOptions, keepDnsService } from './service-object.ts';
export { parseDomain, parseServer } from './stub-domains.ts';
