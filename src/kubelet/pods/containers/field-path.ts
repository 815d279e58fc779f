/** Values of downward API references. Source: pkg/fieldpath, pkg/api/v1/resource ExtractContainerResourceValue. */
import type { Container, Pod, ResourceFieldSelector } from '../../../api/generated/core/v1.ts';
import { parseQuantity, type Quantity, quantityOf, quantityOfMilli } from '../../../base/quantity.ts';

const KEYED = /^metadata\.(annotations|labels)\['(.+)'\]$/;

/** Throws an Error with upstream's text for an unsupported path. */
export function fieldValue(
  pod: Pod,
  path: string,
  addresses: { readonly podIps: readonly string[]; readonly hostIps: readonly string[] },
): string {
  const keyed = KEYED.exec(path);
  if (keyed !== null) {
    const map = keyed[1] === 'labels' ? pod.metadata?.labels : pod.metadata?.annotations;
    const key = keyed[2] ?? '';
    return map !== undefined && Object.hasOwn(map, key) ? (map[key] ?? '') : '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata?.name ?? '';
    case 'metadata.namespace':
      return pod.metadata?.namespace ?? '';
    case 'metadata.uid':
      return pod.metadata?.uid ?? '';
    case 'metadata.labels':
      return formatMap(pod.metadata?.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata?.annotations);
    case 'spec.nodeName':
      return pod.spec?.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec?.serviceAccountName ?? '';
    case 'status.hostIP':
      return addresses.hostIps[0] ?? '';
    case 'status.hostIPs':
      return addresses.hostIps.join(',');
    case 'status.podIP':
      return addresses.podIps[0] ?? '';
    case 'status.podIPs':
      return addresses.podIps.join(',');
    default:
      throw new Error(`unsupported fieldPath: ${path}`);
  }
}

/** `key="value"` lines in key order, quoted like Go's %q. */
function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n');
}

/** Value in units of the divisor, rounded up. A missing limit defaults to the node's allocatable amount. */
export function resourceValue(
  selector: ResourceFieldSelector,
  container: Container,
  allocatable: Readonly<Record<string, Quantity>>,
): string {
  const [side, ...rest] = selector.resource.split('.');
  const name = rest.join('.');
  if ((side !== 'limits' && side !== 'requests') || name === '') {
    throw new Error(`unsupported container resource : ${selector.resource}`);
  }
  const text = container.resources?.[side]?.[name];
  let value = text === undefined ? undefined : parseQuantity(text);
  if (value === undefined && side === 'limits') value = allocatable[name];
  value ??= quantityOf(0);
  const divisorText = String(selector.divisor ?? '0');
  let divisor = parseQuantity(divisorText);
  if (divisor.nanos === 0n) divisor = name === 'cpu' ? quantityOfMilli(1000) : quantityOf(1);
  return String((value.nanos + divisor.nanos - 1n) / divisor.nanos);
}
