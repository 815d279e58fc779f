/**
 * Value formats that are validated in custom resources. Source: k8s.io/kube-openapi/pkg/validation/strfmt, KEP-5117.
 */

import { ipFamilyOf } from '../../base/addresses/addresses.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import { validateCidr } from '../validation/scalars.ts';

type Check = (text: string) => boolean;

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const uuid = (version: string): Check => {
  const variant = version === '3' ? '[0-9a-f]' : '[89ab]';
  const pattern = new RegExp(
    `^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`,
    'i',
  );
  return (text) => pattern.test(text);
};
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const DATE_TIME = /^(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;
const HOSTNAME =
  /^(?:[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?|(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63})$/u;
const EMAIL = /^[^\s@<>(),;:\\"[\]]{1,64}@[^\s@<>(),;:\\"]{1,255}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const GO_DURATION = /^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
/**
 * Other durations that strfmt accepts: a number and a unit anywhere in the text, such as `3 days`. The unit only needs
 * to start with a known name.
 */
const AMOUNT = /\d+\s*([A-Za-zµ]+)/g;
const UNITS: ReadonlySet<string> = new Set(['ns', 'us', 'µs', 'ms', 's', 'm', 'h', 'hr', 'd', 'w', 'wk']);
const LONG_UNITS = ['nano', 'micro', 'milli', 'sec', 'min', 'hour', 'day', 'week'];

function isDuration(text: string): boolean {
  if (text.length > 128) return false;
  if (GO_DURATION.test(text)) return true;
  return [...text.matchAll(AMOUNT)].some(([, unit = '']) => {
    const name = unit.toLowerCase();
    return UNITS.has(name) || LONG_UNITS.some((long) => name.startsWith(long));
  });
}

/** Removes leading zeros, which old versions of Go's ParseIP accepted. */
const withoutZeros = (text: string): string => text.replaceAll(/(^|\.)0+(?=\d)/g, '$1');

const FORMATS: Readonly<Record<string, Check>> = {
  bsonobjectid: (text) => /^[0-9a-f]{24}$/i.test(text),
  uri: isUri,
  email: (text) => text.length <= 1024 && EMAIL.test(/^[^<>@]*<([^<>]*)>$/.exec(text)?.[1] ?? text),
  hostname: (text) => text.length <= 255 && HOSTNAME.test(text) && text.split('.').every((part) => part.length <= 63),
  ipv4: (text) => text.includes('.') && ipFamilyOf(withoutZeros(text)) !== 0,
  ipv6: (text) => ipFamilyOf(text) === 6,
  cidr: (text) => validateCidr(text, '').length === 0,
  mac: isMac,
  uuid: (text) => UUID.test(text),
  uuid3: uuid('3'),
  uuid4: uuid('4'),
  uuid5: uuid('5'),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCreditCard,
  ssn: (text) => /^\d{3}[- ]\d{2}[- ]\d{4}$/.test(text),
  hexcolor: (text) => /^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(text),
  rgbcolor: isRgbColor,
  byte: (text) => text.length % 4 === 0 && BASE64.test(text),
  password: () => true,
  date: isDate,
  duration: isDuration,
  datetime: isDateTime,
  'date-time': isDateTime,
  'k8s-short-name': (text) => dns1123LabelErrors(text).length === 0,
  'k8s-long-name': (text) => dns1123SubdomainErrors(text).length === 0,
};

export const isFormat = (format: string): boolean => Object.hasOwn(FORMATS, format);

/** Whether the text has the format. True for unknown formats. */
export function matchesFormat(format: string, text: string): boolean {
  const check = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  return check === undefined || check(text);
}

/**
 * MAC addresses of 6, 8 or 20 octets: pairs separated by colons or hyphens, groups of four separated by dots, or no
 * separators.
 */
function isMac(text: string): boolean {
  const digits = text.replaceAll(/[:.-]/g, '').length;
  if (digits !== 12 && digits !== 16 && digits !== 40) return false;
  return /^(?:[0-9a-f]{2}(?:(?::[0-9a-f]{2})+|(?:-[0-9a-f]{2})+)|[0-9a-f]{4}(?:\.[0-9a-f]{4})+|[0-9a-f]+)$/i.test(text);
}

function isDate(text: string): boolean {
  const match = DATE.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  if (month < 1 || month > 12 || day < 1) return false;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return day <= ([31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0);
}

function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text);
  return (
    match !== null && isDate(match[1] ?? '') && Number(match[2]) < 24 && Number(match[3]) < 60 && Number(match[4]) < 60
  );
}

/** An absolute URI or an absolute path, as in Go's ParseRequestURI. */
function isUri(text: string): boolean {
  if (text.length === 0 || text.length > 8192 || hasControl(text)) return false;
  if (text.startsWith('/')) return true;
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && URL.canParse(text);
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code <= 0x20 || code === 0x7f) return true;
  }
  return false;
}

function isRgbColor(text: string): boolean {
  const match = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text);
  return match?.slice(1).every((each) => Number(each) <= 255) === true;
}

function isIsbn10(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  let sum = 0;
  for (const [index, char] of [...digits].entries()) sum += (10 - index) * (char === 'X' ? 10 : Number(char));
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  let sum = 0;
  for (const [index, char] of [...digits].entries()) sum += (index % 2 === 0 ? 1 : 3) * Number(char);
  return sum % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, '');
  if (!/^\d{13,19}$/.test(digits)) return false;
  let sum = 0;
  for (const [index, char] of [...digits].reverse().entries()) {
    const digit = Number(char) * (index % 2 === 1 ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0;
}
