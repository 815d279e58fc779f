/** Functions that Kubernetes adds: URLs, quantities, named formats. Source: k8s.io/apiserver/pkg/cel/library. */

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
import { matchesFormat as isFormat } from '../../structural/formats.ts';
import { COST_PER_CHARACTER, declareFunction, declareIn, type Overload, perCharacter } from '../functions.ts';
import { EntryMap, Opaque, Optional, type Value } from '../values.ts';
import { fail, of, reads } from './opaque.ts';

const URL_TYPE = 'kubernetes.URL';
const QUANTITY = 'kubernetes.Quantity';
const FORMAT = 'kubernetes.NamedFormat';

function parseUrl(text: string): Opaque | undefined {
  if (text.length > 8192) return undefined;
  // Go's ParseRequestURI accepts absolute references and absolute paths.
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
  // The WHATWG URL class drops default ports, so the host is taken from the text.
  const written = /^[^:]+:\/\/(?:[^/@?#]*@)?([^/?#]*)/.exec(text)?.[1];
  return written ?? url.host;
}

function queryOf({ url }: ParsedUrl): Value {
  const found = new Map<string, Value>();
  for (const key of new Set(url.searchParams.keys())) found.set(key, url.searchParams.getAll(key));
  return new EntryMap(found);
}

const part = (name: string, read: (url: ParsedUrl) => Value, type = 'string'): Overload =>
  declareFunction(`${URL_TYPE}.${name}(): ${type}`, (url: Opaque) => read(of(url)), { size: () => 8192 });

const urls: readonly Overload[] = [
  declareFunction(
    'url(string): kubernetes.URL',
    (text: string) =>
      parseUrl(text) ??
      fail(
        `URL parse error during conversion from string: parse ${JSON.stringify(text.slice(0, 128))}: ${text === '' ? 'empty url' : 'invalid URI for request'}`,
      ),
    COST_PER_CHARACTER,
  ),
  declareFunction('isURL(string): bool', (text: string) => parseUrl(text) !== undefined, {
    ...COST_PER_CHARACTER,
    estimate: () => 1,
  }),
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

/** Quantities are compared by amount, whatever their unit is. */
const quantity = (value: Quantity): Opaque => new Opaque(QUANTITY, value, String(value.nanos));
const amount = (value: Opaque | bigint): Quantity =>
  typeof value === 'bigint' ? quantityOf(value) : of<Quantity>(value);
const NANO = 1_000_000_000n;
const isInteger = ({ nanos }: Quantity): boolean =>
  nanos % NANO === 0n && BigInt.asIntN(64, nanos / NANO) === nanos / NANO;

const quantities: readonly Overload[] = [
  declareFunction(
    'quantity(string): kubernetes.Quantity',
    (text: string) =>
      quantity(
        tryParseQuantity(text) ??
          fail(`quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`),
      ),
    reads,
  ),
  declareFunction('isQuantity(string): bool', (text: string) => tryParseQuantity(text) !== undefined, reads),
  declareFunction('sign(kubernetes.Quantity): int', (value: Opaque) =>
    BigInt(Math.sign(compareQuantity(amount(value), quantityOf(0n)))),
  ),
  declareFunction('kubernetes.Quantity.isInteger(): bool', (value: Opaque) => isInteger(amount(value))),
  declareFunction('kubernetes.Quantity.asInteger(): int', (value: Opaque) =>
    isInteger(amount(value)) ? amount(value).nanos / NANO : fail('cannot convert value to integer'),
  ),
  declareFunction(
    'kubernetes.Quantity.asApproximateFloat(): double',
    (value: Opaque) => Number(amount(value).nanos) / 1e9,
  ),
  ...(['kubernetes.Quantity', 'int'] as const).flatMap((type) => [
    declareFunction(`kubernetes.Quantity.add(${type}): kubernetes.Quantity`, (a: Opaque, b: Opaque | bigint) =>
      quantity(addQuantity(amount(a), amount(b))),
    ),
    declareFunction(`kubernetes.Quantity.sub(${type}): kubernetes.Quantity`, (a: Opaque, b: Opaque | bigint) =>
      quantity(subtractQuantity(amount(a), amount(b))),
    ),
  ]),
  declareFunction(
    'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool',
    (a: Opaque, b: Opaque) => compareQuantity(amount(a), amount(b)) < 0,
  ),
  declareFunction(
    'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool',
    (a: Opaque, b: Opaque) => compareQuantity(amount(a), amount(b)) > 0,
  ),
  declareFunction('kubernetes.Quantity.compareTo(kubernetes.Quantity): int', (a: Opaque, b: Opaque) =>
    BigInt(Math.sign(compareQuantity(amount(a), amount(b)))),
  ),
];

type Validator = (text: string) => readonly string[];
const matching =
  (name: string, message: string): Validator =>
  (text) =>
    isFormat(name, text) ? [] : [message];
/** Validates prefixes of generated names. Unlike a whole name, a prefix may end with a hyphen. */
const prefix =
  (validate: Validator): Validator =>
  (text) =>
    validate(text.endsWith('-') && text.length > 1 ? `${text.slice(0, -1)}a` : text);

const FORMATS: Readonly<Record<string, Validator>> = {
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
  declareFunction(
    `${FORMAT}.validate(string): opt<list<string>>`,
    (value: Opaque, text: string) => {
      const errors = of<Validator>(value)(text);
      return errors.length === 0 ? Optional.NONE : new Optional([...errors]);
    },
    // Cost of matching a regular expression of 128 characters.
    { cost: ([, text = 0]) => 32 * perCharacter(text), size: () => 8 },
  ),
];

export const kubernetes: readonly Overload[] = [...urls, ...quantities, ...formats];
