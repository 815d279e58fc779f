/**
 * Converts arguments, environment and configuration file to settings. Pure: the file's text is an argument. Precedence
 * and checks are etcd's: variables apply to flags that are not given, and a configuration file replaces both. Source:
 * etcd's embed.Config.
 */
import { isIP } from 'node:net';
import { parseDuration } from '../../base/time/duration.ts';
import type { EtcdUrl } from '../../wire/go-flag-values.ts';

import { foundingProblem, parseInitialCluster } from './cluster.ts';
import { readGates } from './feature-gates.ts';
import { FLAGS } from './flags.ts';
import type { Given } from './given-values.ts';
import type { EtcdCompaction, EtcdLogSettings, EtcdSettings } from './settings.ts';
import { isSecure, tlsOf } from './tls.ts';
import { rejectValue, Values } from './values.ts';

/** Value of `--auth-token` with resolved file names. `createTokens` validates the options. */
function authTokenOf(values: Values): string {
  const text = values.text('auth-token');
  return (text === '' ? 'simple' : text)
    .split(',')
    .map((option) => {
      const [, key, path] = /^(pub-key|priv-key)=(.+)$/.exec(option) ?? [];
      return path === undefined ? option : `${key}=${values.located(path)}`;
    })
    .join(',');
}

export interface EtcdParseOptions {
  /** The values are from a configuration file instead of flags and variables. */
  readonly fromFile: boolean;
  /** Resolves a file name. */
  readonly locate: (path: string) => string;
  /** This host's address, which a member advertises if it listens on all addresses and no advertise flag is given. */
  readonly defaultHost: string | undefined;
}

export interface EtcdParsed {
  readonly settings: EtcdSettings;
  /** Warnings for the log, one line each. */
  readonly warnings: readonly string[];
}

const MAX_ELECTION_MS = 50_000;
/** Limit of learners that core/raft/membership.ts enforces. */
const MAX_LEARNERS = 16;

/** Throws EtcdUsageProblem with the flag and the fix. */
export function settingsOf(given: Given, surroundings: EtcdParseOptions): EtcdParsed {
  const values = new Values(given, surroundings.locate);
  const warnings = [...uselessFlags(given)];
  const listen = listenOf(values);
  checkBinding(values, listen);
  const advertise = advertiseOf(values, listen, surroundings);
  const raft = raftOf(values, !given.has('heartbeat-interval') && !given.has('election-timeout'));
  if (!surroundings.fromFile && given.has('listen-client-urls') && !given.has('advertise-client-urls')) {
    rejectValue('--advertise-client-urls is required with --listen-client-urls: give the addresses that clients use');
  }
  const tls = tlsOf(values, listen, warnings);
  const name = values.text('name');
  const gates = readGates(values, warnings);
  const settings: EtcdSettings = {
    name,
    jsonGateway: values.boolean('enable-grpc-gateway'),
    dataDirectory: surroundings.locate(values.text('data-dir') === '' ? `${name}.etcd` : values.text('data-dir')),
    listen,
    advertise: { client: texts(advertise.client), peer: texts(advertise.peer) },
    cluster: clusterOf(values, given.has('initial-cluster'), name, advertise.peer),
    raft,
    tls,
    quotaBytes: values.number('quota-backend-bytes'),
    compaction: compactionOf(values),
    limits: {
      requestBytes: values.number('max-request-bytes'),
      transactionOperations: values.number('max-txn-ops'),
      concurrentStreams: values.number('max-concurrent-streams'),
    },
    keepAlive: {
      intervalMs: values.milliseconds('grpc-keepalive-interval'),
      timeoutMs: values.milliseconds('grpc-keepalive-timeout'),
    },
    auth: {
      token: authTokenOf(values),
      simpleTokenTtlSeconds: values.number('auth-token-ttl') || 300,
      byCertificate: values.boolean('client-cert-auth'),
      bcryptCost: bcryptCostOf(values, warnings),
    },
    corruption: {
      checkAtStart: gates.get('InitialCorruptCheck') ?? values.boolean('experimental-initial-corrupt-check'),
      intervalMs: values.milliseconds(newest(values, 'corrupt-check-time')),
    },
    progressNotifyMs: values.milliseconds(newest(values, 'watch-progress-notify-interval')),
    slow: {
      applyMs: values.milliseconds(newest(values, 'warning-apply-duration')),
      requestMs: values.milliseconds(newest(values, 'warning-unary-request-duration')),
    },
    extensiveMetrics: values.text('metrics') === 'extensive',
    hostWhitelist: whitelistOf(values),
    unsafeNoFsync: values.boolean('unsafe-no-fsync'),
    log: logOf(values),
  };
  return { settings, warnings };
}

/** The etcd 3.6 name of a flag, unless only its former name is given. */
function newest(values: Values, name: Renamed): Renamed | `experimental-${Renamed}` {
  return values.has(name) ? name : `experimental-${name}`;
}

type Renamed =
  | 'corrupt-check-time'
  | 'watch-progress-notify-interval'
  | 'warning-apply-duration'
  | 'warning-unary-request-duration'
  | 'max-learners';

function* uselessFlags(given: Given): Generator<string> {
  for (const [name, { text, label }] of given) {
    const flag = FLAGS.get(name);
    if (flag === undefined || flag.use === 'used') continue;
    if (flag.use === 'refused') {
      if (text !== flag.initial) rejectValue(`${label}=${text}: ${flag.help}`);
    } else if (flag.harmless?.includes(text) !== true) yield `${label} has no effect: ${flag.help}`;
  }
}

const texts = (urls: readonly EtcdUrl[]): string[] => urls.map((url) => url.text);

function listenOf(values: Values): EtcdSettings['listen'] {
  return {
    client: values.urls('listen-client-urls'),
    clientHttp: values.urls('listen-client-http-urls'),
    peer: values.urls('listen-peer-urls'),
    metrics: values.urls('listen-metrics-urls'),
    reusePort: values.boolean('socket-reuse-port'),
  };
}

function checkBinding(values: Values, listen: EtcdSettings['listen']): void {
  const checked = [
    ['listen-peer-urls', listen.peer],
    ['listen-client-urls', listen.client],
    ['listen-client-http-urls', listen.clientHttp],
    ['listen-metrics-urls', listen.metrics],
  ] as const;
  for (const [name, urls] of checked) {
    for (const { path, host, text } of urls) {
      if (path !== undefined || host === 'localhost' || isIP(host.split('%')[0] ?? '') !== 0) continue;
      rejectValue(
        `${values.label(name)}: the host of "${text}" must be an IP address or localhost; 0.0.0.0 is all addresses`,
      );
    }
  }
  // A client address may occur twice: with and without TLS.
  for (const secure of [false, true]) {
    const client = listen.client.filter((url) => isSecure(url) === secure);
    rejectDuplicates([...listen.peer, ...client, ...listen.clientHttp, ...listen.metrics]);
  }
  if (listen.client.length === 0 && values.has('advertise-client-urls')) {
    rejectValue(`${values.label('listen-client-urls')} is empty; name at least one address`);
  }
}

function rejectDuplicates(urls: readonly EtcdUrl[]): void {
  const used = new Map<string, string>();
  for (const { host, port, path, text } of urls) {
    const place = path ?? `${host}:${port}`;
    const other = used.get(place);
    if (other !== undefined && port !== 0)
      rejectValue(`${other} and ${text} are the same address; give each of them a different port`);
    used.set(place, text);
  }
}

function advertiseOf(
  values: Values,
  listen: EtcdSettings['listen'],
  { defaultHost }: EtcdParseOptions,
): { readonly client: readonly EtcdUrl[]; readonly peer: readonly EtcdUrl[] } {
  const one = (
    name: 'advertise-client-urls' | 'initial-advertise-peer-urls',
    bound: readonly EtcdUrl[],
  ): readonly EtcdUrl[] => {
    const urls = values.urls(name);
    const bare = urls.find((url) => url.path === undefined && url.host === '');
    if (bare !== undefined)
      rejectValue(`${values.label(name)}: "${bare.text}" has no host; write ${bare.scheme}://HOST:PORT`);
    const [first] = bound;
    if (values.has(name) || first?.host !== '0.0.0.0' || defaultHost === undefined) return urls;
    const host = isIP(defaultHost) === 6 ? `[${defaultHost}]` : defaultHost;
    return [{ ...first, host: defaultHost, text: `${first.scheme}://${host}:${first.port}` }];
  };
  return {
    client: one('advertise-client-urls', listen.client),
    peer: one('initial-advertise-peer-urls', listen.peer),
  };
}

function raftOf(values: Values, adapts: boolean): EtcdSettings['raft'] {
  const heartbeatMs = values.number('heartbeat-interval');
  const electionMs = values.number('election-timeout');
  const heartbeat = values.label('heartbeat-interval');
  const election = values.label('election-timeout');
  if (heartbeatMs <= 0) rejectValue(`${heartbeat} is 0; give a number of milliseconds, usually 100`);
  if (electionMs <= 0)
    rejectValue(`${election} is 0; give a number of milliseconds, usually ten times the heartbeat interval`);
  if (5 * heartbeatMs > electionMs) {
    rejectValue(
      `${election} is ${electionMs} ms; it must be at least five times the heartbeat interval of ${heartbeatMs} ms`,
    );
  }
  if (electionMs > MAX_ELECTION_MS)
    rejectValue(`${election} is ${electionMs} ms; it must be at most ${MAX_ELECTION_MS} ms`);
  return {
    heartbeatMs,
    electionMs,
    adapts,
    advanceInitialTicks: values.boolean('initial-election-tick-advance'),
    snapshotCount: values.number('snapshot-count'),
  };
}

function clusterOf(
  values: Values,
  given: boolean,
  name: string,
  advertised: readonly EtcdUrl[],
): EtcdSettings['cluster'] {
  const state = values.text('initial-cluster-state') === 'existing' ? 'existing' : 'new';
  // A value equal to etcd's default counts as not given, so that the only initial member has the name in --name.
  const isDefault = !given || values.text('initial-cluster') === FLAGS.get('initial-cluster')?.initial;
  const members = isDefault
    ? [{ name, peerUrls: texts(advertised) }]
    : parseInitialCluster(values.text('initial-cluster'));
  const bootstrapProblem =
    'problem' in members
      ? `${values.label('initial-cluster')}: ${members.problem}`
      : foundingProblem(members, { name, state, advertised });
  return {
    members: 'problem' in members ? [] : members,
    bootstrapProblem,
    state,
    token: values.text('initial-cluster-token'),
    forceNew: values.boolean('force-new-cluster'),
    strictReconfigCheck: values.boolean('strict-reconfig-check'),
    maxLearners: maxLearnersOf(values),
  };
}

function maxLearnersOf(values: Values): number {
  const name = newest(values, 'max-learners');
  const most = values.number(name);
  if (most < 1 || most > MAX_LEARNERS)
    rejectValue(`${values.label(name)} is ${most}; a cluster may have 1 to ${MAX_LEARNERS}`);
  return most;
}

function compactionOf(values: Values): EtcdCompaction | undefined {
  const mode = values.text('auto-compaction-mode');
  if (mode !== 'periodic' && mode !== 'revision') {
    rejectValue(`${values.label('auto-compaction-mode')}: "${mode}" is not accepted; give periodic or revision`);
  }
  const text = values.text('auto-compaction-retention');
  const label = values.label('auto-compaction-retention');
  const plain = /^\+?\d+$/.test(text) ? Number(text) : undefined;
  if (mode === 'revision') {
    if (plain === undefined) rejectValue(`${label}: "${text}" is not a number of revisions; give one such as 1000`);
    return plain === 0 ? undefined : { mode, revisions: plain };
  }
  const retentionMs = plain === undefined ? parseDuration(text) : plain * 3_600_000;
  if (retentionMs === undefined || retentionMs < 0) {
    rejectValue(`${label}: "${text}" is not accepted; give hours, or a duration with its unit such as 5m`);
  }
  return retentionMs === 0 ? undefined : { mode, retentionMs };
}

function bcryptCostOf(values: Values, warnings: string[]): number {
  const cost = values.number('bcrypt-cost');
  if (cost >= 4 && cost <= 31) return cost;
  warnings.push(`${values.label('bcrypt-cost')} must be from 4 to 31; 10 is used`);
  return 10;
}

function whitelistOf(values: Values): ReadonlySet<string> | undefined {
  const names = values.list('host-whitelist');
  return names.length === 0 || names.includes('*') ? undefined : new Set(names.map((name) => name.toLowerCase()));
}

function logOf(values: Values): EtcdLogSettings {
  const logger = values.text('logger');
  if (logger !== 'zap' && logger !== 'capnslog') {
    rejectValue(`${values.label('logger')}: "${logger}" is not accepted; give zap`);
  }
  const level = values.boolean('debug') ? 'debug' : values.text('log-level');
  const outputs = values.list(values.has('log-outputs') || !values.has('log-output') ? 'log-outputs' : 'log-output');
  const places = outputs.map((each) => {
    if (each === 'default' || each === 'systemd/journal') return 'stderr';
    return each === 'stderr' || each === 'stdout' ? each : values.located(each);
  });
  return {
    least: level === 'debug' || level === 'info' ? 'info' : level === 'warn' ? 'warn' : 'error',
    verbosity: level === 'debug' ? 4 : 2,
    outputs: places.length === 0 ? ['stderr'] : [...new Set(places)],
  };
}
