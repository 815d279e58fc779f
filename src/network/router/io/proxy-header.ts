/** Parses the header of the PROXY protocol. Source: haproxy.org "The PROXY protocol", versions 1 and 2. */
import { canonicalAddress, textOf } from '../../../base/addresses/addresses.ts';

export type ProxyHeader =
  | { readonly kind: 'more' }
  | { readonly kind: 'bad' }
  /** `source` is undefined for a health check by the load balancer itself. */
  | { readonly kind: 'header'; readonly length: number; readonly source: string | undefined };

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const V1_MAX = 107;
export const MAX_PROXY_HEADER_BYTES = 16 + 2048;
const BAD: ProxyHeader = { kind: 'bad' };
const MORE: ProxyHeader = { kind: 'more' };

export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const compared = Math.min(bytes.length, SIGNATURE.length);
  if (SIGNATURE.compare(bytes, 0, compared, 0, compared) === 0) return bytes.length < 16 ? MORE : version2(bytes);
  return version1(bytes);
}

function version1(bytes: Buffer): ProxyHeader {
  const text = bytes.toString('latin1', 0, V1_MAX);
  if (!'PROXY '.startsWith(text.slice(0, 6))) return BAD;
  const end = text.indexOf('\r\n');
  if (end === -1) return text.length < V1_MAX ? MORE : BAD;
  const [, family, source = '', target, from, to, ...rest] = text.slice(0, end).split(' ');
  const length = end + 2;
  if (family === 'UNKNOWN') return { kind: 'header', length, source: undefined };
  const address = canonicalAddress(source);
  const isValid = (family === 'TCP4' || family === 'TCP6') && rest.length === 0 && target !== undefined;
  if (!isValid || address === undefined || !/^\d{1,5}$/.test(from ?? '') || !/^\d{1,5}$/.test(to ?? '')) return BAD;
  return { kind: 'header', length, source: address };
}

function version2(bytes: Buffer): ProxyHeader {
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const length = 16 + bytes.readUInt16BE(14);
  if (command >> 4 !== 2 || length > MAX_PROXY_HEADER_BYTES) return BAD;
  if (bytes.length < length) return MORE;
  if ((command & 15) === 0) return { kind: 'header', length, source: undefined };
  if ((command & 15) !== 1) return BAD;
  const size = family === 0x11 ? 4 : family === 0x21 ? 16 : 0;
  if (size === 0) return { kind: 'header', length, source: undefined };
  if (length < 16 + 2 * size + 4) return BAD;
  const groups: number[] = [];
  for (let at = 16; at < 16 + size; at += 2) groups.push(bytes.readUInt16BE(at));
  return { kind: 'header', length, source: canonicalAddress(textOf(groups)) };
}
