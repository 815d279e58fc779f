/**
 * Renders the table as an HAProxy configuration that serves the same routes. Source: HAProxy 2.6 configuration manual.
 */
import { endpointKey } from './balance.ts';
import type { Backend } from './port.ts';
import type { RoutingTable } from './routing-table.ts';
import type { Row } from './table-rows.ts';

/** Paths from which HAProxy reads certificates. The configuration itself contains no keys. */
export interface HaproxyFiles {
  /** Directory of PEM files with certificate and key; undefined if TLS is not terminated. */
  readonly certificates: string | undefined;
  /** CA bundle that verifies re-encrypted connections. */
  readonly ca: string;
}

const BALANCES = { random: 'random', source: 'source', roundrobin: 'roundrobin', leastconn: 'leastconn' } as const;
/** HAProxy's limit of a server's weight. */
const MAX_WEIGHT = 256;

export function haproxyConfig(
  table: RoutingTable,
  ports: { readonly http: number; readonly https: number },
  files: HaproxyFiles,
): string {
  // Excludes rows with line breaks, which would start another directive.
  const rows = table.rows
    .filter(isPrintable)
    .sort(
      (a, b) =>
        Number(a.wildcard !== 'none') - Number(b.wildcard !== 'none') ||
        Number(b.path.kind === 'exact') - Number(a.path.kind === 'exact') ||
        b.path.value.length - a.path.value.length,
    );
  const passthrough = rows.filter(({ tls }) => tls === 'passthrough');
  const lines = [
    'global',
    '  maxconn 20000',
    'defaults',
    '  timeout connect 5s',
    '  timeout client 30s',
    '  timeout server 30s',
    '  timeout tunnel 1h',
    '  timeout http-request 10s',
    'frontend public',
    '  mode http',
    `  bind :${ports.http}`,
    '  option forwardfor',
    ...rows.filter((row) => row.insecure !== 'none').flatMap((row) => ruleLines(row, 'http')),
    'frontend public_ssl',
    '  mode tcp',
    `  bind :${ports.https}`,
    '  tcp-request inspect-delay 5s',
    '  tcp-request content accept if { req.ssl_hello_type 1 }',
    ...passthrough.map((row) => `  use_backend ${nameOf(row)} if { req.ssl_sni -m reg -i ${hostPattern(row)} }`),
    ...(files.certificates === undefined ? [] : secureLines(rows, files.certificates)),
    ...[...new Map(rows.map((row) => [nameOf(row), row])).values()].flatMap((row) => backendLines(row, files.ca)),
  ];
  return `${lines.join('\n')}\n`;
}

function secureLines(rows: readonly Row[], certificates: string): string[] {
  return [
    '  default_backend be_sni',
    'backend be_sni',
    '  mode tcp',
    '  server fe_sni unix@/var/run/hyperedge-sni.sock send-proxy-v2',
    'frontend fe_sni',
    '  mode http',
    `  bind unix@/var/run/hyperedge-sni.sock ssl crt ${certificates} accept-proxy alpn h2,http/1.1`,
    '  option forwardfor',
    ...rows.filter(({ tls }) => tls === 'terminate').flatMap((row) => ruleLines(row, 'https')),
  ];
}

function ruleLines(row: Row, scheme: 'https' | 'http'): string[] {
  const conditions = [`{ req.hdr(host),field(1,:) -m reg -i ${hostPattern(row)} }`, ...pathCondition(row)];
  if (row.method !== undefined) conditions.push(`{ method ${row.method} }`);
  const condition = conditions.join(' ');
  if (scheme === 'http' && row.insecure === 'redirect')
    return [`  http-request redirect scheme https code 302 if ${condition}`];
  return [`  use_backend ${nameOf(row)} if ${condition}`];
}

function pathCondition({ path: { kind, value } }: Row): string[] {
  if (value === '' || (value === '/' && kind === 'prefix')) return [];
  if (kind === 'exact') return [`{ path ${quoted(value)} }`];
  const base = escaped(value.replace(/\/$/, ''));
  return [`{ path -m reg ${quoted(value.endsWith('/') ? `^${base}/` : `^${base}(/|$)`)} }`];
}

function hostPattern({ host, wildcard }: Row): string {
  if (host === '') return quoted('.*');
  const before = wildcard === 'none' ? '' : wildcard === 'label' ? '[^.]+\\.' : '.+\\.';
  return quoted(`^${before}${escaped(host)}$`);
}

function backendLines(row: Row, ca: string): string[] {
  const { backend } = row;
  const isTcp = row.tls === 'passthrough';
  const { options, upstream } = backend;
  const lines = [
    `# ${backendText(backend)}`,
    `backend ${nameOf(row)}`,
    `  mode ${isTcp ? 'tcp' : 'http'}`,
    `  balance ${BALANCES[options.balance]}`,
    `  timeout server ${options.serverTimeoutMs}ms`,
    `  timeout tunnel ${options.tunnelTimeoutMs}ms`,
  ];
  if (options.allowed !== undefined)
    lines.push(`  tcp-request content reject if !{ src ${options.allowed.join(' ')} }`);
  if (!isTcp) {
    lines.push('  http-request set-header X-Forwarded-Host %[req.hdr(host)]');
    lines.push('  http-request set-header X-Forwarded-Proto https if { ssl_fc }');
    if (options.hsts !== undefined)
      lines.push(`  http-response set-header Strict-Transport-Security ${quoted(options.hsts)}`);
    if (options.rewrite !== undefined)
      lines.push(
        `  http-request replace-path ${quoted(`^${escaped(backend.path)}/?(.*)$`)} ${quoted(`${formatText(options.rewrite.replace(/\/$/, ''))}/\\1`)}`,
      );
    if (options.cookie !== undefined) lines.push(`  cookie ${options.cookie.name} insert indirect nocache httponly`);
  }
  const tls = upstream.tls ? ` ssl verify required ca-file ${ca} sni str(${upstream.serverName})` : '';
  for (const pool of backend.pools)
    for (const endpoint of pool.endpoints) {
      const key = endpointKey(endpoint);
      const id = key.replace(/[^A-Za-z0-9.-]/g, '_');
      const weight = Math.min(MAX_WEIGHT, pool.weight);
      const cookie = isTcp || options.cookie === undefined ? '' : ` cookie ${id}`;
      lines.push(`  server ${pool.service.replace('/', ':')}:${id} ${key} weight ${weight}${cookie}${tls}`);
    }
  return lines;
}

/** Replaces characters that HAProxy does not accept in names with their codes. */
const nameOf = ({ backend: { id, path, host } }: Row): string =>
  `be_${`${id}_${host}${path}`.replace(/[^A-Za-z0-9.-]/g, (each) => (each === '/' ? ':' : `_${each.charCodeAt(0).toString(16)}_`))}`;

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** Quotes a text with single quotes, in which HAProxy takes everything literally. */
const quoted = (text: string): string => `'${text.replace(/'/g, `'"'"'`)}'`;

/** Escapes a text for a log format, in which `%` starts an expression and a backslash a reference. */
const formatText = (text: string): string => text.replace(/\\/g, '\\\\').replace(/%/g, '%%');

const PRINTABLE = /^[\x20-\x7e]*$/;
const isPrintable = ({ backend: { id, host, path }, path: { value }, method = '' }: Row): boolean =>
  [id, host, path, value, method].every((text) => PRINTABLE.test(text));

const backendText = ({ id, host, path }: Backend): string => `${id} ${host}${path}`;
