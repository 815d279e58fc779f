/**
 * Name rules of the API. Each function returns upstream's errors; an empty list means that the value is valid.
 * All patterns take linear time.
 * Source: k8s.io/apimachinery/pkg/util/validation (RFC 1123, RFC 1035).
 */
/** Values that are longer are rejected without a match against the pattern. */
const MAX_TESTED = 4096;
export const MAX_LABEL_LENGTH = 63;
export const MAX_SUBDOMAIN_LENGTH = 253;

const LABEL_1123 = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const LABEL_WITH_UNDERSCORE = /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
const LABEL_1035 = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;
const QUALIFIED = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const CONFIG_MAP_KEY = /^[-._a-zA-Z0-9]+$/;
const HTTP_HEADER = /^[-A-Za-z0-9]+$/;
const PORT_NAME_CHARACTERS = /^[-a-z0-9]+$/;

/** Upstream states the limit in characters for names and in bytes for labels. */
const tooLong = (length: number, unit: 'bytes' | 'characters' = 'characters'): string =>
  `must be no more than ${length} ${unit}`;

/** Text of upstream's RegexError: the rule, examples and the pattern. */
function rule(message: string, pattern: string, ...examples: string[]): string {
  const listed = examples.map((example) => `'${example}', `).join(' or ');
  return `${message} (e.g. ${listed}regex used for validation is '${pattern}')`;
}

const LABEL_1123_PATTERN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const LABEL_1123_RULE = rule(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL_1123_PATTERN,
  'my-name',
  '123-abc',
);
const SUBDOMAIN_RULE = rule(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  `${LABEL_1123_PATTERN}(\\.${LABEL_1123_PATTERN})*`,
  'example.com',
);
const UNDERSCORE_PATTERN = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const SEARCH_DOMAIN_RULE = rule(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  `${UNDERSCORE_PATTERN}(\\.${UNDERSCORE_PATTERN})*`,
  'example.com',
);
const WILDCARD_RULE = rule(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  `\\*\\.${LABEL_1123_PATTERN}(\\.${LABEL_1123_PATTERN})*`,
  '*.example.com',
);
const LABEL_1035_RULE = rule(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
);
const QUALIFIED_RULE = rule(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]',
  'MyName',
  'my.name',
  '123-abc',
);
const QUALIFIED_PREFIX_RULE = `a valid label key ${rule(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]',
  'MyName',
  'my.name',
  '123-abc',
)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;
const LABEL_VALUE_RULE = rule(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?',
  'MyValue',
  'my_value',
  '12345',
);
const CONFIG_MAP_KEY_RULE = rule(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  '[-._a-zA-Z0-9]+',
  'key.name',
  'KEY_NAME',
  'key-name',
);
const HTTP_HEADER_RULE = rule(
  "a valid HTTP header must consist of alphanumeric characters or '-'",
  '[-A-Za-z0-9]+',
  'X-Header-Name',
);

export function dns1123LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_LABEL_LENGTH) errors.push(tooLong(MAX_LABEL_LENGTH));
  if (!LABEL_1123.test(value)) errors.push(isSubdomain(value) ? 'must not contain dots' : LABEL_1123_RULE);
  return errors;
}

export function dns1123SubdomainErrors(value: string): string[] {
  return subdomainErrors(value, 'characters');
}

function subdomainErrors(value: string, unit: 'bytes' | 'characters'): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooLong(MAX_SUBDOMAIN_LENGTH, unit));
  if (!isSubdomain(value)) errors.push(SUBDOMAIN_RULE);
  return errors;
}

/** A DNS search domain, whose labels may contain underscores. */
export function searchDomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooLong(MAX_SUBDOMAIN_LENGTH));
  const fine = value.length <= MAX_TESTED && value.split('.').every((label) => LABEL_WITH_UNDERSCORE.test(label));
  if (!fine) errors.push(SEARCH_DOMAIN_RULE);
  return errors;
}

export function wildcardSubdomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooLong(MAX_SUBDOMAIN_LENGTH));
  if (!value.startsWith('*.') || !isSubdomain(value.slice(2))) errors.push(WILDCARD_RULE);
  return errors;
}

export function dns1035LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_LABEL_LENGTH) errors.push(tooLong(MAX_LABEL_LENGTH));
  if (!LABEL_1035.test(value)) errors.push(LABEL_1035_RULE);
  return errors;
}

/** A label or annotation key: `[prefix/]name`. */
export function qualifiedNameErrors(value: string): string[] {
  const errors: string[] = [];
  const parts = value.split('/');
  let name = parts[0] ?? '';
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    name = parts[1] ?? '';
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(prefix, 'bytes').map((each) => `prefix part ${each}`));
  } else if (parts.length > 2) {
    errors.push(QUALIFIED_PREFIX_RULE);
    return errors;
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (name.length > MAX_LABEL_LENGTH) errors.push(`name part ${tooLong(MAX_LABEL_LENGTH, 'bytes')}`);
  if (!QUALIFIED.test(name)) errors.push(`name part ${QUALIFIED_RULE}`);
  return errors;
}

export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_LABEL_LENGTH) errors.push(tooLong(MAX_LABEL_LENGTH, 'bytes'));
  if (value !== '' && !QUALIFIED.test(value)) errors.push(LABEL_VALUE_RULE);
  return errors;
}

/** A name that must be one segment of a URL path, for example the name of an RBAC object. */
export function pathSegmentErrors(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`];
  const errors: string[] = [];
  for (const character of ['/', '%']) {
    if (value.includes(character)) errors.push(`may not contain '${character}'`);
  }
  return errors;
}

/** A key of a ConfigMap or Secret. It must be usable as a file name. */
export function configMapKeyErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > MAX_SUBDOMAIN_LENGTH) errors.push(tooLong(MAX_SUBDOMAIN_LENGTH));
  if (!CONFIG_MAP_KEY.test(value)) errors.push(CONFIG_MAP_KEY_RULE);
  if (value === '.' || value === '..') errors.push(`must not be '${value}'`);
  else if (value.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** The name of an environment variable: printable ASCII without `=` (KEP-4369). */
export function environmentNameErrors(value: string): string[] {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code < 0x20 || code > 0x7e || code === 0x3d) {
      return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
    }
  }
  return value === '' ? ['environment variable name must be non-empty'] : [];
}

/** An IANA service name, as for named ports of containers. */
export function portNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (value.length > 15) errors.push(tooLong(15));
  if (!PORT_NAME_CHARACTERS.test(value)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)');
  if (value.includes('--')) errors.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

export function portNumberErrors(port: number): string[] {
  return Number.isInteger(port) && port >= 1 && port <= 65535 ? [] : ['must be between 1 and 65535, inclusive'];
}

export function httpHeaderNameErrors(value: string): string[] {
  return HTTP_HEADER.test(value) ? [] : [HTTP_HEADER_RULE];
}

function isSubdomain(value: string): boolean {
  return value.length <= MAX_TESTED && value.split('.').every((label) => LABEL_1123.test(label));
}
