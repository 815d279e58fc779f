/**
 * Classification of a destination address before a connection. The text is parsed to bytes in every spelling that
 * `getaddrinfo` accepts. An IPv4 address that is embedded in an IPv6 address is classified too, because a translator or
 * the kernel may extract it. Sources: RFC 4291, 6052 (NAT64), 8215, 3056 (6to4), 4380 (Teredo), 5214 (ISATAP);
 * inet_aton(3); RFC 1122 §3.2.1.3.
 */
import { groupsOf, ipFamilyOf } from './addresses.ts';

export type AddressKind =
  /** The text is not an address, or it is not the address of a single host: 0.0.0.0/8, `::`, broadcast, multicast. */
  | 'invalid'
  | 'loopback'
  /** Link-local addresses, which include the metadata services of clouds. */
  | 'link-local'
  | 'unicast';

/** Sixteen bytes of an IPv6 address. An IPv4 address is mapped into ::ffff:0:0/96. */
type Bytes = Uint8Array;

const LENGTH = 16;
const V4_AT = 12;
const V4_PREFIX_BITS = 96;

const bytesOfGroups = (groups: readonly number[]): number[] => groups.flatMap((group) => [group >> 8, group & 0xff]);

/** Parses the dotted, octal, hexadecimal and short IPv4 forms of inet_aton(3). */
function legacyIpv4(text: string): number[] | undefined {
  const parts = text.split('.');
  if (parts.length > 4) return undefined;
  const numbers: number[] = [];
  for (const part of parts) {
    if (/^0x[0-9a-f]{1,32}$/i.test(part)) numbers.push(Number.parseInt(part.slice(2), 16));
    else if (/^0[0-7]{0,32}$/.test(part)) numbers.push(Number.parseInt(part, 8));
    else if (/^[1-9]\d{0,9}$/.test(part)) numbers.push(Number(part));
    else return undefined;
  }
  const last = numbers.pop() ?? 0;
  const rest = 4 - numbers.length;
  if (numbers.some((each) => each > 255) || last >= 256 ** rest) return undefined;
  for (let place = rest - 1; place >= 0; place--) numbers.push(Math.floor(last / 256 ** place) % 256);
  return numbers;
}

/**
 * Bytes of an address in any spelling, with or without brackets and a zone; undefined if the text is not an address.
 */
function addressBytes(text: string): Bytes | undefined {
  const plain = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  const [address = ''] = plain.split('%', 1);
  if (address.includes(':')) {
    return ipFamilyOf(address) === 6 ? Uint8Array.from(bytesOfGroups(groupsOf(address))) : undefined;
  }
  const v4 = plain === address ? legacyIpv4(address) : undefined;
  return v4 === undefined ? undefined : mapped(v4);
}

/** Whether the text is an address, so that it needs no name resolution. */
export const isAddress = (text: string): boolean => addressBytes(text) !== undefined;

function mapped(v4: Iterable<number>): Bytes {
  const bytes = new Uint8Array(LENGTH);
  bytes.set([0xff, 0xff], V4_AT - 2);
  bytes.set([...v4], V4_AT);
  return bytes;
}

const startsWith = (bytes: Bytes, prefix: readonly number[]): boolean =>
  prefix.every((byte, index) => bytes[index] === byte);
const zeros = (count: number): number[] => Array<number>(count).fill(0);

const MAPPED = [...zeros(10), 0xff, 0xff];
/** IPv6 prefixes after which an IPv4 address is embedded. `places`: positions of the four bytes. */
const CARRIERS: readonly { readonly prefix: readonly number[]; readonly places: readonly number[] }[] = [
  // IPv4-compatible and IPv4-translated (SIIT) addresses.
  { prefix: zeros(12), places: [12, 13, 14, 15] },
  { prefix: [...zeros(8), 0xff, 0xff, 0, 0], places: [12, 13, 14, 15] },
  // NAT64: the well-known prefix, and the local-use prefix with the two common prefix lengths.
  { prefix: [0, 0x64, 0xff, 0x9b, ...zeros(8)], places: [12, 13, 14, 15] },
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 1], places: [12, 13, 14, 15] },
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 1], places: [6, 7, 9, 10] },
  { prefix: [0x20, 0x02], places: [2, 3, 4, 5] },
];
const TEREDO = [0x20, 0x01, 0, 0];
/** IPv6 address of AWS's metadata service. It is a unique local address. */
const EC2_METADATA = [0xfd, 0, 0x0e, 0xc2, ...zeros(10), 0x02, 0x54];

/** The address itself and the IPv4 addresses that are embedded in it. */
function readings(bytes: Bytes): readonly Bytes[] {
  if (startsWith(bytes, MAPPED)) return [bytes];
  const found = [bytes];
  // `::` and `::1` contain no IPv4 address.
  const small = startsWith(bytes, zeros(15));
  const at = (places: readonly number[]): number[] => places.map((place) => bytes[place] ?? 0);
  for (const { prefix, places } of CARRIERS) {
    const carried = at(places);
    // Zero bytes are the padding of another prefix length. No translator forwards to 0.0.0.0.
    if (!small && startsWith(bytes, prefix) && carried.some((byte) => byte !== 0)) found.push(mapped(carried));
  }
  if (startsWith(bytes, TEREDO)) found.push(mapped([...bytes.subarray(V4_AT)].map((byte) => byte ^ 0xff)));
  const isatap = (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
  if (isatap) found.push(mapped(at([12, 13, 14, 15])));
  return found;
}

function kindOfIpv4(a: number, b: number, c: number, d: number): AddressKind {
  if (a === 127) return 'loopback';
  if (a === 169 && b === 254) return 'link-local';
  return a === 0 || (a >= 224 && a < 240) || (a & b & c & d) === 255 ? 'invalid' : 'unicast';
}

function kindOfBytes(bytes: Bytes): AddressKind {
  if (startsWith(bytes, MAPPED)) {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(V4_AT);
    return kindOfIpv4(a, b, c, d);
  }
  if (startsWith(bytes, zeros(15))) {
    if (bytes[15] === 0) return 'invalid';
    if (bytes[15] === 1) return 'loopback';
  }
  const [first = 0, second = 0] = bytes;
  if (first === 0xff) return 'invalid';
  return (first === 0xfe && (second & 0xc0) === 0x80) || startsWith(bytes, EC2_METADATA) ? 'link-local' : 'unicast';
}

/**
 * The most restricted kind of the address and of IPv4 addresses embedded in it; 'invalid' if the text is not an
 * address.
 */
export function addressKind(text: string): AddressKind {
  // Fast path: nearly all addresses are IPv4, and there may be tens of thousands of Services and endpoints.
  if (ipFamilyOf(text) === 4) {
    const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
    return kindOfIpv4(a, b, c, d);
  }
  const bytes = addressBytes(text);
  if (bytes === undefined) return 'invalid';
  return (
    readings(bytes)
      .map(kindOfBytes)
      .find((kind) => kind !== 'unicast') ?? 'unicast'
  );
}

/** A set of addresses and networks (`10.0.0.0/8`). Invalid entries match nothing. */
export class AddressSet {
  readonly #networks: readonly { readonly base: Bytes; readonly bits: number }[];

  constructor(members: Iterable<string>) {
    this.#networks = [...members].flatMap((member) => {
      const [address = '', length] = member.split('/');
      const base = addressBytes(address);
      if (base === undefined) return [];
      const whole = length === undefined;
      const offset = startsWith(base, MAPPED) && !address.includes(':') ? V4_PREFIX_BITS : 0;
      const bits = whole ? LENGTH * 8 : offset + Number(length);
      return Number.isInteger(bits) && bits <= LENGTH * 8 ? [{ base, bits }] : [];
    });
  }

  /** Whether the set contains the address or an IPv4 address embedded in it. */
  has(text: string): boolean {
    const bytes = addressBytes(text);
    if (bytes === undefined) return false;
    return readings(bytes).some((reading) =>
      this.#networks.some(({ base, bits }) =>
        base.every((byte, index) => {
          const shift = 8 - Math.min(8, Math.max(0, bits - index * 8));
          return byte >> shift === (reading[index] ?? 0) >> shift;
        }),
      ),
    );
  }
}
