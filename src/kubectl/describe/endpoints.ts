/** Addresses of a service in `describe`. */
import { type AnyObject, fieldAt, listAt, textAt } from '../core/objects.ts';
import { textsAt } from './page.ts';

const SHOWN_ENDPOINTS = 3;

/** The first ready addresses for a port, with the number of the others. */
export function endpointsText(slices: readonly AnyObject[], portName: string): string {
  if (slices.length === 0) return '<none>';
  const found = slices.flatMap((slice) => {
    const addresses = listAt(slice, 'endpoints')
      .filter((endpoint) => fieldAt(endpoint, 'conditions', 'ready') !== false)
      .map((endpoint) => textsAt(endpoint, 'addresses')[0] ?? '');
    const ports = listAt(slice, 'ports');
    if (ports.length === 0) return addresses;
    return ports
      .filter((port) => textAt(port, 'name') === portName)
      .flatMap((port) =>
        addresses.map((address) => `${address.includes(':') ? `[${address}]` : address}:${textAt(port, 'port')}`),
      );
  });
  const more = found.length - SHOWN_ENDPOINTS;
  return `${found.slice(0, SHOWN_ENDPOINTS).join(',')}${more > 0 ? ` + ${more} more...` : ''}`;
}
