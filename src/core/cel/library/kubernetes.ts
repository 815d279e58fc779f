/** What Kubernetes adds: URLs, quantities, addresses, named formats, semantic versions. Source: k8s.io/apiserver/pkg/cel/library. */

import { matchesFormat as isFormat } from '../../../api/structural/formats.ts';
import {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../../base/names.ts';
import {
  addQuantity,
  compareQuantity,
  type Quantity,
  quantityOf,
  subtractQuantity,
  tryParseQuantity,
} from '../../../base/quantity.ts';
import { type Costs, declare, declareIn, type Overload, perCharacter, walks } from '../functions.ts';
import { EntryMap, EvaluationError, Opaque, Optional, type Value } from '../values.ts';
import { type Cidr, type Ip, isIp, parseCidr, parseIp } from './network.ts';

const URL_TYPE = 'kubernetes.URL';
const QUANTITY = 'kubernetes.Quantity';
const IP = 'net.IP';
const CIDR = 'net.CIDR';
const FORMAT = 'kubernetes.NamedFormat';
const SEMVER = 'kubernetes.Semver';

/** Reading one of these takes as long as some ordinary steps. */
const reads: Costs = { cost: ([text = 0]) => perCharacter(text) + 8 };

const of = <T>(value: Opaque): T => value.value as T;

function parseUrl(text: string): Opaque | undefined {
  if (text.length > 8192) return undefined;
  // Absolute references and absolute paths are what Go's ParseRequestURI takes.
  if (text.startsWith('/')) {
    if (!URL.canParse(`http://nowhere${text}`)) return undefined;
    return new Opaque(URL_TYPE, { url: new URL(`http://nowhere${text}`), relative: true, text }, text);
  }
  if (!/^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) || !URL.canParse(text)) return undefined;
  return new Opaque(URL_TYPE, { url: new URL(text), relative: false, text }, text);
}

interface ParsedUrl {
  readonly url: URL;
  readonly relative: boolean;
  readonly text: string;
}

function hostOf({ url, relative, text }: ParsedUrl): string {
  if (relative) return '';
  // The platform drops the port that the scheme implies; what was written counts.
  const written = /^[^:]+:\/\/(?:[^/@?#]*@)?([^/?#]*)/.exec(text)?.[1];
  return written ?? url.host;
}

function queryOf({ url }: ParsedUrl): Value {
  const found = new Map<string, Value>();
  for (const key of new Set(url.searchParams.keys())) found.set(key, url.searchParams.getAll(key));
  return new EntryMap(found);
}

const part = (name: string, read: (url: ParsedUrl) => Value, type = 'string'): Overload =>
  declare(`${URL_TYPE}.${name}(): ${type}`, (url: Opaque) => read(of(url)), { size: () => 8192 });

const urls: readonly Overload[] = [
  declare(
    'url(string): kubernetes.URL',
    (text: string) =>
      parseUrl(text) ??
      fail(
        `URL parse error during conversion from string: parse ${JSON.stringify(text.slice(0, 128))}: invalid URI for request`,
      ),
    walks,
  ),
  declare('isURL(string): bool', (text: string) => parseUrl(text) !== undefined, walks),
  part('getScheme', ({ url, relative }) => (relative ? '' : url.protocol.slice(0, -1))),
  part('getHost', hostOf),
  part('getHostname', (url) =>
    hostOf(url)
      .replace(/:\d*$/, '')
      .replace(/^\[(.*)\]$/, '$1'),
  ),
  part('getPort', (url) => /:(\d+)$/.exec(hostOf(url))?.[1] ?? ''),
  part('getEscapedPath', ({ url, text, relative }) =>
    relative
      ? (text.split(/[?#]/, 1)[0] ?? '')
      : /^[^:]+:\/\/[^/?#]*$/.test(text.split(/[?#]/, 1)[0] ?? '')
        ? ''
        : url.pathname,
  ),
  part('getQuery', queryOf, 'map<string, list<string>>'),
];

function fail(message: string): never {
  throw new EvaluationError(message);
}

/** Equal amounts are equal, whatever unit they were written in. */
const quantity = (value: Quantity): Opaque => new Opaque(QUANTITY, value, String(value.nanos));
const amount = (value: Opaque | bigint): Quantity =>
  typeof value === 'bigint' ? quantityOf(value) : of<Quantity>(value);
const NANO = 1_000_000_000n;
const isInteger = ({ nanos }: Quantity): boolean =>
  nanos % NANO === 0n && BigInt.asIntN(64, nanos / NANO) === nanos / NANO;

const quantities: readonly Overload[] = [
  declare(
    'quantity(string): kubernetes.Quantity',
    (text: string) =>
      quantity(
        tryParseQuantity(text) ??
          fail(`quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`),
      ),
    reads,
  ),
  declare('isQuantity(string): bool', (text: string) => tryParseQuantity(text) !== undefined, reads),
  declare('kubernetes.Quantity.sign(): int', (value: Opaque) =>
    BigInt(Math.sign(compareQuantity(amount(value), quantityOf(0n)))),
  ),
  declare('kubernetes.Quantity.isInteger(): bool', (value: Opaque) => isInteger(amount(value))),
  declare('kubernetes.Quantity.asInteger(): int', (value: Opaque) =>
    isInteger(amount(value)) ? amount(value).nanos / NANO : fail('cannot convert value to integer'),
  ),
  declare('kubernetes.Quantity.asApproximateFloat(): double', (value: Opaque) => Number(amount(value).nanos) / 1e9),
  ...(['kubernetes.Quantity', 'int'] as const).flatMap((type) => [
    declare(`kubernetes.Quantity.add(${type}): kubernetes.Quantity`, (a: Opaque, b: Opaque | bigint) =>
      quantity(addQuantity(amount(a), amount(b))),
    ),
    declare(`kubernetes.Quantity.sub(${type}): kubernetes.Quantity`, (a: Opaque, b: Opaque | bigint) =>
      quantity(subtractQuantity(amount(a), amount(b))),
    ),
  ]),
  declare(
    'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool',
    (a: Opaque, b: Opaque) => compareQuantity(amount(a), amount(b)) < 0,
  ),
  declare(
    'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool',
    (a: Opaque, b: Opaque) => compareQuantity(amount(a), amount(b)) > 0,
  ),
  declare('kubernetes.Quantity.compareTo(kubernetes.Quantity): int', (a: Opaque, b: Opaque) =>
    BigInt(Math.sign(compareQuantity(amount(a), amount(b)))),
  ),
];

const ip = (value: Ip): Opaque => new Opaque(IP, value, value.text);
const cidr = (value: Cidr): Opaque => new Opaque(CIDR, value, value.text);
const toIp = (text: string): Ip =>
  parseIp(text) ?? fail(`IP Address ${JSON.stringify(text.slice(0, 64))} parse error during conversion from string`);
const toCidr = (text: string): Cidr =>
  parseCidr(text) ??
  fail(`network address parse error during conversion from string: ${JSON.stringify(text.slice(0, 64))}`);
const addressOf = (value: Opaque | string): Ip => (typeof value === 'string' ? toIp(value) : of<Ip>(value));
const contains = (net: Cidr, address: Ip): boolean =>
  net.family === address.family && address.bits >> BigInt(net.hostBits) === net.bits >> BigInt(net.hostBits);
const containsNet = (outer: Cidr, inner: Cidr): boolean =>
  outer.family === inner.family &&
  inner.prefix >= outer.prefix &&
  inner.bits >> BigInt(outer.hostBits) === outer.bits >> BigInt(outer.hostBits);

const question = (name: string, test: (address: Ip) => boolean): Overload =>
  declare(`net.IP.${name}(): bool`, (value: Opaque) => test(of(value)), { cost: () => 20 });
const inside = (...nets: string[]): ((address: Ip) => boolean) => {
  const parsed = nets.map(toCidr);
  return (address) => parsed.some((net) => contains(net, address));
};

const addresses: readonly Overload[] = [
  declare('ip(string): net.IP', (text: string) => ip(toIp(text)), reads),
  declare('isIP(string): bool', (text: string) => isIp(text), reads),
  declareIn('ip', 'isCanonical(string): bool', (text: string) => toIp(text).text === text, reads),
  declare('net.IP.family(): int', (value: Opaque) => BigInt(of<Ip>(value).family)),
  question('isUnspecified', (address) => address.bits === 0n),
  question('isLoopback', inside('127.0.0.0/8', '::1/128')),
  question('isLinkLocalMulticast', inside('224.0.0.0/24', 'ff02::/16')),
  question('isLinkLocalUnicast', inside('169.254.0.0/16', 'fe80::/10')),
  question(
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
  declare('string(net.IP): string', (value: Opaque) => of<Ip>(value).text, { size: () => 39 }),
  declare('cidr(string): net.CIDR', (text: string) => cidr(toCidr(text)), reads),
  declare('isCIDR(string): bool', (text: string) => parseCidr(text) !== undefined, reads),
  declare('net.CIDR.ip(): net.IP', (value: Opaque) => ip(of<Cidr>(value).address)),
  declare('net.CIDR.prefixLength(): int', (value: Opaque) => BigInt(of<Cidr>(value).prefix)),
  declare('net.CIDR.masked(): net.CIDR', (value: Opaque) => cidr(of<Cidr>(value).masked())),
  declare('net.CIDR.containsIP(net.IP): bool', (net: Opaque, address: Opaque) => contains(of(net), addressOf(address))),
  declare(
    'net.CIDR.containsIP(string): bool',
    (net: Opaque, address: string) => contains(of(net), addressOf(address)),
    reads,
  ),
  declare('net.CIDR.containsCIDR(net.CIDR): bool', (net: Opaque, other: Opaque) => containsNet(of(net), of(other))),
  declare(
    'net.CIDR.containsCIDR(string): bool',
    (net: Opaque, other: string) => containsNet(of(net), toCidr(other)),
    reads,
  ),
  declare('string(net.CIDR): string', (value: Opaque) => of<Cidr>(value).text, { size: () => 43 }),
];

type Judge = (text: string) => readonly string[];
const matching =
  (name: string, message: string): Judge =>
  (text) =>
    isFormat(name, text) ? [] : [message];
/** A name that random characters will be added to may end in a hyphen. */
const prefix =
  (judge: Judge): Judge =>
  (text) =>
    judge(text.endsWith('-') && text.length > 1 ? `${text.slice(0, -1)}a` : text);

const FORMATS: Readonly<Record<string, Judge>> = {
  dns1123Label: dns1123LabelErrors,
  dns1123Subdomain: dns1123SubdomainErrors,
  dns1035Label: dns1035LabelErrors,
  qualifiedName: qualifiedNameErrors,
  dns1123LabelPrefix: prefix(dns1123LabelErrors),
  dns1123SubdomainPrefix: prefix(dns1123SubdomainErrors),
  dns1035LabelPrefix: prefix(dns1035LabelErrors),
  labelValue: labelValueErrors,
  uri: matching('uri', 'must be a valid URI'),
  uuid: matching('uuid', 'does not match the UUID format'),
  byte: matching('byte', 'invalid base64'),
  date: matching('date', 'invalid date'),
  datetime: matching('date-time', 'invalid datetime'),
};

const format = (name: string): Opaque => new Opaque(FORMAT, FORMATS[name], name);

const formats: readonly Overload[] = [
  ...Object.keys(FORMATS).map((name) => declareIn('format', `${name}(): ${FORMAT}`, () => format(name))),
  declareIn('format', `named(string): opt<${FORMAT}>`, (name: string) =>
    Object.hasOwn(FORMATS, name) ? new Optional(format(name)) : Optional.NONE,
  ),
  declare(
    `${FORMAT}.validate(string): opt<list<string>>`,
    (value: Opaque, text: string) => {
      const errors = of<Judge>(value)(text);
      return errors.length === 0 ? Optional.NONE : new Optional([...errors]);
    },
    { cost: ([, text = 0]) => perCharacter(text), size: () => 8 },
  ),
];

interface Semver {
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
}

const SEMVER_PATTERN =
  /^(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*))?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/;

function parseSemver(text: string, normalize: boolean): Semver | undefined {
  let source = text;
  if (normalize) {
    const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?$/.exec(text.slice(0, 256));
    if (match !== null)
      source = `${BigInt(match[1] ?? 0)}.${BigInt(match[2] ?? 0)}.${BigInt(match[3] ?? 0)}${match[4] ?? ''}`;
  }
  const match = SEMVER_PATTERN.exec(source.length > 256 ? '' : source);
  if (match === null) return undefined;
  const pre = match[4]?.split('.') ?? [];
  if (pre.some((each) => /^0\d+$/.test(each))) return undefined;
  return { numbers: [BigInt(match[1] ?? 0), BigInt(match[2] ?? 0), BigInt(match[3] ?? 0)], pre };
}

function compareSemver(a: Semver, b: Semver): number {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length);
  for (let index = 0; index < Math.max(a.pre.length, b.pre.length); index++) {
    const left = a.pre[index];
    const right = b.pre[index];
    if (left === undefined || right === undefined) return left === undefined ? -1 : 1;
    if (left === right) continue;
    const numbers = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (numbers[0] === true && numbers[1] === true) return BigInt(left) < BigInt(right) ? -1 : 1;
    if (numbers[0] !== numbers[1]) return numbers[0] === true ? -1 : 1;
    return left < right ? -1 : 1;
  }
  return 0;
}

const semver = (text: string, normalize: boolean): Opaque => {
  const parsed =
    parseSemver(text, normalize) ?? fail(`no valid semantic version: ${JSON.stringify(text.slice(0, 64))}`);
  return new Opaque(SEMVER, parsed, `${parsed.numbers.join('.')}-${parsed.pre.join('.')}`);
};

const semvers: readonly Overload[] = [
  declare('semver(string): kubernetes.Semver', (text: string) => semver(text, false), reads),
  declare('semver(string, bool): kubernetes.Semver', semver, reads),
  declare('isSemver(string): bool', (text: string) => parseSemver(text, false) !== undefined, reads),
  declare(
    'isSemver(string, bool): bool',
    (text: string, normalize: boolean) => parseSemver(text, normalize) !== undefined,
    reads,
  ),
  ...(['major', 'minor', 'patch'] as const).map((name, index) =>
    declare(`kubernetes.Semver.${name}(): int`, (value: Opaque) => of<Semver>(value).numbers[index] ?? 0n),
  ),
  declare(
    'kubernetes.Semver.isLessThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) < 0,
  ),
  declare(
    'kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool',
    (a: Opaque, b: Opaque) => compareSemver(of(a), of(b)) > 0,
  ),
  declare('kubernetes.Semver.compareTo(kubernetes.Semver): int', (a: Opaque, b: Opaque) =>
    BigInt(compareSemver(of(a), of(b))),
  ),
];

export const kubernetes: readonly Overload[] = [...urls, ...quantities, ...addresses, ...formats, ...semvers];
