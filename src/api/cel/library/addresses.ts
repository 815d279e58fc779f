/** Functions `ip` and `cidr`. Source: k8s.io/apiserver/pkg/cel/library/{ip,cidr}.go. */
import { declareFunction, declareIn, type Overload } from '../functions.ts';
import { Opaque } from '../values.ts';
import { type Cidr, type Ip, isIp, parseCidr, parseIp } from './network.ts';
import { fail, of, reads } from './opaque.ts';

const IP = 'net.IP';
const CIDR = 'net.CIDR';

const ip = (value: Ip): Opaque => new Opaque(IP, value, value.text);
const cidr = (value: Cidr): Opaque => new Opaque(CIDR, value, value.text);
const toIp = (text: string): Ip => parseIp(text) ?? fail(addressProblem(text.slice(0, 64)));
const toCidr = (text: string): Cidr => parseCidr(text) ?? fail(networkProblem(text.slice(0, 64)));

/** The reason why a text is not an address, in the wording of Go's net/netip. */
function addressProblem(text: string): string {
  const quoted = JSON.stringify(text);
  if (text.includes('%')) return `IP address ${quoted} with zone value is not allowed`;
  if (/^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(text)) return `IPv4-mapped IPv6 address ${quoted} is not allowed`;
  const parts = text.split('.');
  const why = (): string => {
    if (!/[.:]/.test(text)) return 'unable to parse IP';
    if (text.includes(':') || !parts.every((part) => /^\d+$/.test(part))) return 'unexpected character';
    if (parts.some((part) => /^0\d/.test(part))) return 'IPv4 field has octet with leading zero';
    if (parts.some((part) => Number(part) > 255)) return 'IPv4 field has value >255';
    return parts.length < 4 ? 'IPv4 address too short' : 'IPv4 address too long';
  };
  return `IP Address ${quoted} parse error during conversion from string: ParseAddr(${quoted}): ${why()}`;
}

function networkProblem(text: string): string {
  const what = 'network address parse error during conversion from string';
  const why = text.includes('/') ? '' : ": no '/'";
  return `${what}: ${what}: netip.ParsePrefix(${JSON.stringify(text)})${why}`;
}
const addressOf = (value: Opaque | string): Ip => (typeof value === 'string' ? toIp(value) : of<Ip>(value));
const contains = (net: Cidr, address: Ip): boolean =>
  net.family === address.family && address.bits >> BigInt(net.hostBits) === net.bits >> BigInt(net.hostBits);
const containsNet = (outer: Cidr, inner: Cidr): boolean =>
  outer.family === inner.family &&
  inner.prefix >= outer.prefix &&
  inner.bits >> BigInt(outer.hostBits) === outer.bits >> BigInt(outer.hostBits);

const predicate = (name: string, test: (address: Ip) => boolean): Overload =>
  declareFunction(`net.IP.${name}(): bool`, (value: Opaque) => test(of(value)), { cost: () => 20 });
const inside = (...nets: string[]): ((address: Ip) => boolean) => {
  const parsed = nets.map(toCidr);
  return (address) => parsed.some((net) => contains(net, address));
};

export const addresses: readonly Overload[] = [
  declareFunction('ip(string): net.IP', (text: string) => ip(toIp(text)), reads),
  declareFunction('isIP(string): bool', (text: string) => isIp(text), reads),
  declareIn('ip', 'isCanonical(string): bool', (text: string) => toIp(text).text === text, reads),
  declareFunction('net.IP.family(): int', (value: Opaque) => BigInt(of<Ip>(value).family)),
  predicate('isUnspecified', (address) => address.bits === 0n),
  predicate('isLoopback', inside('127.0.0.0/8', '::1/128')),
  predicate('isLinkLocalMulticast', inside('224.0.0.0/24', 'ff02::/16')),
  predicate('isLinkLocalUnicast', inside('169.254.0.0/16', 'fe80::/10')),
  predicate(
    'isGlobalUnicast',
    (address) =>
      !inside(
        '127.0.0.0/8',
        '::1/128',
        '224.0.0.0/4',
        'ff00::/8',
        '169.254.0.0/16',
        'fe80::/10',
        '255.255.255.255/32',
      )(address) && address.bits !== 0n,
  ),
  declareFunction('string(net.IP): string', (value: Opaque) => of<Ip>(value).text, { size: () => 39 }),
  declareFunction('cidr(string): net.CIDR', (text: string) => cidr(toCidr(text)), reads),
  declareFunction('isCIDR(string): bool', (text: string) => parseCidr(text) !== undefined, reads),
  declareFunction('net.CIDR.ip(): net.IP', (value: Opaque) => ip(of<Cidr>(value).address)),
  declareFunction('net.CIDR.prefixLength(): int', (value: Opaque) => BigInt(of<Cidr>(value).prefix)),
  declareFunction('net.CIDR.masked(): net.CIDR', (value: Opaque) => cidr(of<Cidr>(value).masked())),
  declareFunction('net.CIDR.containsIP(net.IP): bool', (net: Opaque, address: Opaque) =>
    contains(of(net), addressOf(address)),
  ),
  declareFunction(
    'net.CIDR.containsIP(string): bool',
    (net: Opaque, address: string) => contains(of(net), addressOf(address)),
    reads,
  ),
  declareFunction('net.CIDR.containsCIDR(net.CIDR): bool', (net: Opaque, other: Opaque) =>
    containsNet(of(net), of(other)),
  ),
  declareFunction(
    'net.CIDR.containsCIDR(string): bool',
    (net: Opaque, other: string) => containsNet(of(net), toCidr(other)),
    reads,
  ),
  declareFunction('string(net.CIDR): string', (value: Opaque) => of<Cidr>(value).text, { size: () => 43 }),
];
