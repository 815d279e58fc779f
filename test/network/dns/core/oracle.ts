/** Simple model of the zone: a list of all records of all services, searched sequentially. */
import type { Service } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';

export interface Line {
  readonly name: string;
  readonly type: string;
  readonly data: string;
}

export function reverse(ip: string): string {
  if (!ip.includes(':')) return `${ip.split('.').reverse().join('.')}.in-addr.arpa`;
  const [head = '', tail = ''] = ip.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const groups = ip.includes('::') ? [...left, ...Array(8 - left.length - right.length).fill('0'), ...right] : left;
  return `${[...groups.map((group: string) => group.padStart(4, '0')).join('')].reverse().join('.')}.ip6.arpa`;
}

export function allLines(services: readonly Service[], slices: readonly EndpointSlice[], zone: string): Line[] {
  const lines: Line[] = [];
  const typeOf = (ip: string): string => (ip.includes(':') ? 'AAAA' : 'A');
  for (const service of services) {
    const name = `${service.metadata?.name}.${service.metadata?.namespace}.svc.${zone}`;
    const srv = (port: { name?: string; protocol?: string; port?: number }, target: string): void => {
      lines.push({ name, type: 'SRV', data: `0 100 ${port.port} ${target}` });
      if (port.name !== undefined && port.name !== '')
        lines.push({
          name: `_${port.name}._${(port.protocol ?? 'TCP').toLowerCase()}.${name}`,
          type: 'SRV',
          data: `0 100 ${port.port} ${target}`,
        });
    };
    if (service.spec?.type === 'ExternalName') {
      lines.push({ name, type: 'CNAME', data: service.spec.externalName ?? '' });
    } else if (service.spec?.clusterIP === 'None') {
      for (const slice of slices) {
        if (slice.metadata?.namespace !== service.metadata?.namespace) continue;
        if (slice.metadata?.labels?.['kubernetes.io/service-name'] !== service.metadata?.name) continue;
        for (const endpoint of slice.endpoints ?? []) {
          if (endpoint.conditions?.ready === false && service.spec.publishNotReadyAddresses !== true) continue;
          for (const ip of endpoint.addresses) {
            const host = `${endpoint.hostname ?? ip.replaceAll(/[.:]/g, '-')}.${name}`;
            lines.push({ name, type: typeOf(ip), data: ip }, { name: host, type: typeOf(ip), data: ip });
            lines.push({ name: reverse(ip), type: 'PTR', data: host });
            for (const port of slice.ports ?? []) srv(port, host);
          }
        }
      }
    } else {
      for (const ip of service.spec?.clusterIPs ?? []) {
        lines.push({ name, type: typeOf(ip), data: ip }, { name: reverse(ip), type: 'PTR', data: name });
      }
      if ((service.spec?.clusterIPs ?? []).length > 0) for (const port of service.spec?.ports ?? []) srv(port, name);
    }
  }
  return lines;
}

/** Whether the name, or a name below it, has a record (RFC 8020). */
export const exists = (lines: readonly Line[], name: string): boolean =>
  lines.some((line) => line.name === name || line.name.endsWith(`.${name}`));
