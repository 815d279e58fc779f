/**
 * Annotations of routes. Source: OpenShift's documentation, "Route-specific annotations"; the router's HAProxy template
 * for defaults.
 */
import { canonicalAddress } from '../../../base/addresses/addresses.ts';
import { parseNetwork } from '../../../base/addresses/networks.ts';
import type { Balance, RateLimits, RouteOptions } from './port.ts';

const PREFIX = 'haproxy.router.openshift.io/';
const OTHER_PREFIX = 'router.openshift.io/';
const LIMITS = `${PREFIX}rate-limit-connections`;
const BALANCES: readonly Balance[] = ['random', 'source', 'roundrobin', 'leastconn'];
const SAME_SITES = ['Lax', 'Strict', 'None'];
const UNITS: ReadonlyMap<string, number> = new Map([
  ['us', 0.001],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
/** HAProxy's limit of a timeout, 2^31 - 1 ms, which also is the limit of timers in Node. */
const MAX_TIMEOUT_MS = 2_147_483_647;
const MAX_COUNT = 2_147_483_647;
const COOKIE_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
// Directives separated by semicolons (RFC 6797 §6.1).
const HSTS = /^\s*max-age\s*=\s*"?\d+"?(\s*;\s*(includeSubDomains|preload))*\s*;?\s*$/i;
const REWRITE = /^\/[\x21-\x7e]*$/;

export const DEFAULT_OPTIONS: RouteOptions = {
  balance: 'random',
  serverTimeoutMs: 30_000,
  connectTimeoutMs: 5_000,
  tunnelTimeoutMs: 3_600_000,
  allowed: undefined,
  limits: undefined,
  cookie: undefined,
  hsts: undefined,
  rewrite: undefined,
};

export interface ReadOptions {
  readonly options: RouteOptions;
  /** One message per problem, which names the annotation. */
  readonly problems: readonly string[];
}

type Annotations = Readonly<Record<string, string>>;

/**
 * Parses the annotations. `cookieName` is the default cookie name. `passthrough` routes have no cookies and balance by
 * source.
 */
export function readOptions(
  annotations: Annotations,
  cookieName: string,
  { passthrough }: { readonly passthrough: boolean },
): ReadOptions {
  const reader = new AnnotationReader(annotations);
  const options: RouteOptions = {
    balance: reader.oneOf('balance', BALANCES) ?? (passthrough ? 'source' : DEFAULT_OPTIONS.balance),
    serverTimeoutMs: reader.duration('timeout') ?? DEFAULT_OPTIONS.serverTimeoutMs,
    connectTimeoutMs: DEFAULT_OPTIONS.connectTimeoutMs,
    tunnelTimeoutMs:
      reader.duration('timeout-tunnel') ??
      (passthrough ? reader.duration('timeout') : undefined) ??
      DEFAULT_OPTIONS.tunnelTimeoutMs,
    allowed: reader.networks('ip_whitelist') ?? reader.networks('ip_allowlist'),
    limits: limitsOf(reader),
    cookie: passthrough ? undefined : cookieOf(reader, cookieName),
    hsts: reader.matching('hsts_header', HSTS, 'give max-age=SECONDS, then includeSubDomains and preload'),
    rewrite: reader.matching('rewrite-target', REWRITE, 'give a path that begins with /'),
  };
  return { options, problems: reader.problems };
}

function limitsOf(reader: AnnotationReader): RateLimits | undefined {
  const limits = {
    concurrent: reader.count('rate-limit-connections.concurrent-tcp'),
    connections: reader.count('rate-limit-connections.rate-tcp'),
    requests: reader.count('rate-limit-connections.rate-http'),
  };
  return reader.isTrue(LIMITS) ? limits : undefined;
}

function cookieOf(reader: AnnotationReader, otherwise: string): RouteOptions['cookie'] {
  const fix = 'use letters, digits, "_", "." and "-"';
  const name = reader.matching('cookie_name', COOKIE_NAME, fix) ?? otherwise;
  const sameSite = reader.oneOf('cookie-same-site', SAME_SITES) ?? 'None';
  return reader.isTrue(`${PREFIX}disable_cookies`) ? undefined : { name, sameSite };
}

/** Networks by the annotations of a route, because each new table reads all routes. */
const readNetworks = new WeakMap<Annotations, { readonly text: string; readonly networks: readonly string[] }>();

class AnnotationReader {
  readonly problems: string[] = [];
  readonly #annotations: Annotations;

  constructor(annotations: Annotations) {
    this.#annotations = annotations;
  }

  /** Reads an annotation. '' counts as absent, as in the router's template. */
  #read(name: string): { readonly key: string; readonly value: string } | undefined {
    for (const prefix of [PREFIX, OTHER_PREFIX]) {
      const key = `${prefix}${name}`;
      const value = Object.hasOwn(this.#annotations, key) ? this.#annotations[key] : undefined;
      if (value !== undefined && value !== '') return { key, value };
    }
    return undefined;
  }

  #refuse(key: string, value: string, fix: string): undefined {
    const shown = JSON.stringify(value.length > 64 ? `${value.slice(0, 64)}…` : value);
    this.problems.push(`metadata.annotations[${key}]: invalid value ${shown}; ${fix}`);
    return undefined;
  }

  isTrue(key: string): boolean {
    return Object.hasOwn(this.#annotations, key) && /^true$/i.test(this.#annotations[key] ?? '');
  }

  matching(name: string, pattern: RegExp, fix: string): string | undefined {
    const found = this.#read(name);
    if (found === undefined) return undefined;
    // CR and LF are rejected separately, because `$` matches before a final line feed in other languages.
    if (/[\r\n\0]/.test(found.value) || !pattern.test(found.value)) return this.#refuse(found.key, found.value, fix);
    return found.value;
  }

  oneOf<const T extends string>(name: string, values: readonly T[]): T | undefined {
    const found = this.#read(name);
    if (found === undefined) return undefined;
    const value = values.find((each) => each === found.value);
    return value ?? this.#refuse(found.key, found.value, `use one of ${values.join(', ')}`);
  }

  duration(name: string): number | undefined {
    const found = this.#read(name);
    if (found === undefined) return undefined;
    const [, digits = '', unit = 'ms'] = /^([1-9]\d{0,14})(us|ms|s|m|h|d)?$/.exec(found.value) ?? [];
    if (digits === '') return this.#refuse(found.key, found.value, 'give a duration such as 5s or 500ms');
    return Math.max(1, Math.min(MAX_TIMEOUT_MS, Math.round(Number(digits) * (UNITS.get(unit) ?? 1))));
  }

  count(name: string): number | undefined {
    const found = this.#read(name);
    if (found === undefined) return undefined;
    const value = /^\d{1,10}$/.test(found.value) ? Number(found.value) : Number.NaN;
    if (!(value >= 0 && value <= MAX_COUNT)) return this.#refuse(found.key, found.value, 'give a whole number');
    return value === 0 ? undefined : value;
  }

  networks(name: string): readonly string[] | undefined {
    const found = this.#read(name);
    if (found === undefined) return undefined;
    const known = readNetworks.get(this.#annotations);
    if (known?.text === found.value) return known.networks;
    const texts = found.value.split(/[ ,]+/).filter((text) => text !== '');
    const isNetwork = (text: string): boolean =>
      text.includes('/') ? parseNetwork(text) !== undefined : canonicalAddress(text) !== undefined;
    if (texts.length === 0 || !texts.every(isNetwork))
      return this.#refuse(found.key, found.value, 'give addresses and networks separated by blanks');
    readNetworks.set(this.#annotations, { text: found.value, networks: texts });
    return texts;
  }
}
