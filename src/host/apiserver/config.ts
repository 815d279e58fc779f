/**
 * Converts the flags of kube-apiserver to the settings of the API server: reads the named files and
 * generates missing certificates.
 */

import { X509Certificate } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { RuntimeConfig } from '../../api/registry/runtime-config.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import { runtimeConfigOf } from '../../apiserver/config/runtime-config.ts';
import type { ApiServerConfig } from '../../apiserver/index.ts';
import type { ReleaseSource } from '../../apiserver/server/release-port.ts';
import { parseNetworks } from '../../base/addresses/networks.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { createSelfSigned, lifetimeFrom } from '../../pki/index.ts';
import { chooseCiphers } from '../../wire/cipher-suites.ts';
import { checkFeatureGates } from '../config/feature-gates/index.ts';
import { type OpenSecret, readReferenced, readSecret } from '../config/files.ts';
import { nthAddress } from '../network/addresses.ts';
import { systemClock as clock } from '../process/process.ts';
import { admissionOf } from './admission.ts';
import { authenticationOf } from './authentication.ts';
import { curvesOf, namedServing, servingLimits } from './serving.ts';

/**
 * Longer than the interval at which the balancers of the nodes probe API servers, so that they notice a shutdown first.
 */
const HANDOVER_SECONDS = 1.5;

const YEAR_DAYS = 365;

export interface ApiOptions {
  /** The origin of file names, for messages: a configuration file or `kube-apiserver`. */
  readonly referredToBy: string;
  /** The host's own configuration, with stricter defaults than upstream's. */
  readonly ownHost: boolean;
  readonly soleWriter: boolean;
  readonly openshift?: NonNullable<ApiServerConfig['openshift']>;
  /**
   * Whether the web console is served. False: requests for its paths return 404. Undefined: its paths have no special
   * meaning.
   */
  readonly console?: boolean;
  /** Serves only the API of kube-apiserver. Default false. */
  readonly upstreamOnly?: boolean;
  /** Files that other hosts may fetch; undefined if there are none. */
  readonly releases?: ReleaseSource;
  /** Called for world-readable secret files; if undefined, they are rejected. */
  readonly onOpenSecret?: OpenSecret | undefined;
}

/**
 * Settings of the API server, with warnings. Throws CodedErrors and ApiUsageProblems that name the flag or the file.
 */
export async function apiConfigOf(
  values: ApiValues,
  { referredToBy, ownHost, soleWriter, openshift, upstreamOnly = false, onOpenSecret }: ApiOptions,
): Promise<{ readonly config: ApiServerConfig; readonly warnings: readonly string[] }> {
  checkFeatureGates(values);
  const { runtimeConfig, warnings: unknownVersions } = runtimeConfigOf(values);
  const warnings = [...values.warnings(), ...unknownVersions];
  const text = (path: string): Promise<string> => readReferenced(path, referredToBy);
  const secret = (path: string): Promise<string> => readSecret(path, referredToBy, onOpenSecret);
  const bindAddress = values.text('bind-address') === '' ? '0.0.0.0' : values.text('bind-address');
  const serviceCidr = serviceRanges(values);
  const advertiseAddress = advertised(values, bindAddress);
  const nodePorts = portRange(values);
  const admission = await admissionOf(values, { referredToBy, ownHost, onOpenSecret });
  const requestTimeoutMs = values.milliseconds('request-timeout');
  return {
    warnings,
    config: {
      bindAddress,
      port: values.number('secure-port'),
      advertiseAddress,
      serving: await serving(values, { bindAddress, advertiseAddress, serviceCidr }, { text, secret }),
      ...(await namedServing(values, { text, secret })),
      ...tlsLimits(values, warnings),
      ...servingLimits(values),
      ...(openshift === undefined ? {} : { openshift }),
      ...(upstreamOnly ? { upstreamOnly } : {}),
      ...(ownHost ? { handoverDelaySeconds: HANDOVER_SECONDS } : {}),
      ...(await authenticationOf(values, { referredToBy, ownHost, onOpenSecret })),
      ...admission,
      ...(await kubeletAccess(values, { text, secret })),
      ...(await proxyClient(values, { text, secret })),
      serviceCidr,
      nodePortRange: nodePorts,
      ...(requestTimeoutMs > 0 ? { requestTimeoutSeconds: requestTimeoutMs / 1000 } : {}),
      compactionIntervalSeconds: values.milliseconds('etcd-compaction-interval') / 1000,
      ...watchTime(values),
      ...eventTime(values),
      ...inFlight(values),
      runtimeConfig: ownHost ? runtimeConfig : withoutMetrics(runtimeConfig),
      soleWriter,
    },
  };
}

const METRICS = 'metrics.k8s.io/v1beta1';

/**
 * Disables metrics.k8s.io unless `--runtime-config` names it. Beside upstream's components, metrics-server serves this
 * API.
 */
const withoutMetrics = (given: RuntimeConfig): RuntimeConfig =>
  given.has(METRICS) ? given : new Map([...given, [METRICS, false]]);

/** TLS versions and cipher suites. Throws ApiUsageProblems; insecure suites are omitted with a warning. */
export function tlsLimits(values: ApiValues, warnings: string[]): Pick<ApiServerConfig, 'tls'> {
  const isNewest = values.text('tls-min-version') === 'VersionTLS13';
  const { ciphers, weak, unknown } = chooseCiphers(values.list('tls-cipher-suites'));
  if (unknown !== undefined)
    values.refuse(
      'tls-cipher-suites',
      `"${unknown}" is not a cipher suite of Go; give names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`,
    );
  for (const name of weak) warnings.push(`${values.label('tls-cipher-suites')}: ${name} is insecure and omitted`);
  const curves = curvesOf(values);
  return {
    tls: {
      minVersion: isNewest ? 'TLSv1.3' : 'TLSv1.2',
      // TLS 1.3 suites are not configurable, so the list has no effect with minimum version 1.3.
      ...(ciphers === undefined || isNewest ? {} : { ciphers }),
      ...(curves === undefined ? {} : { curves }),
    },
  };
}

/** The minimum duration of watches without timeoutSeconds. Throws ApiUsageProblems. */
export function watchTime(values: ApiValues): Pick<ApiServerConfig, 'minWatchSeconds'> {
  const seconds = values.number('min-request-timeout');
  if (seconds < 0) values.refuse('min-request-timeout', 'must not be negative');
  // 0 is ignored: with it, upstream would end every watch immediately.
  return seconds === 0 ? {} : { minWatchSeconds: seconds };
}

/** The TTL of events. Throws ApiUsageProblems. */
export function eventTime(values: ApiValues): Pick<ApiServerConfig, 'eventTtlSeconds'> {
  if (!values.has('event-ttl')) return {};
  const ms = values.milliseconds('event-ttl');
  if (ms <= 0) values.refuse('event-ttl', 'must be positive');
  // An event expires with its lease, whose TTL is in whole seconds.
  return { eventTtlSeconds: Math.ceil(ms / 1000) };
}

/** In-flight limits. Throws ApiUsageProblems. */
export function inFlight(values: ApiValues): Pick<ApiServerConfig, 'maxInFlight' | 'priorityAndFairness'> {
  const [reading, mutating] = ['max-requests-inflight', 'max-mutating-requests-inflight'] as const;
  for (const name of [reading, mutating]) if (values.number(name) < 0) values.refuse(name, 'must not be negative');
  const maxInFlight = { reading: values.number(reading), mutating: values.number(mutating) };
  const priorityAndFairness = values.boolean('enable-priority-and-fairness');
  if (priorityAndFairness && maxInFlight.reading + maxInFlight.mutating === 0)
    values.refuse(reading, `is 0, and so is --${mutating}; with priority and fairness their sum must be positive`);
  return { maxInFlight, priorityAndFairness };
}

interface Readers {
  text(path: string): Promise<string>;
  secret(path: string): Promise<string>;
}

function advertised(values: ApiValues, bindAddress: string): string {
  const given = values.text('advertise-address');
  if (given !== '') return given;
  if (bindAddress !== '0.0.0.0' && bindAddress !== '::') return bindAddress;
  const outside = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4');
  return outside?.address ?? '127.0.0.1';
}

function portRange(values: ApiValues): readonly [number, number] {
  const [, first, last] = /^(\d+)-(\d+)$/.exec(values.text('service-node-port-range')) ?? [];
  if (first === undefined || Number(first) > Number(last) || Number(last) > 65_535) {
    return values.refuse('service-node-port-range', 'give a range such as 30000-32767');
  }
  return [Number(first), Number(last)];
}

async function kubeletAccess(
  values: ApiValues,
  { text, secret }: Readers,
): Promise<Pick<ApiServerConfig, 'kubelet' | 'kubeletTimeoutMs'>> {
  const certificate = values.file('kubelet-client-certificate');
  const key = values.file('kubelet-client-key');
  const ca = values.file('kubelet-certificate-authority');
  const kubeletTimeoutMs = values.has('kubelet-timeout') ? values.milliseconds('kubelet-timeout') : undefined;
  if (kubeletTimeoutMs !== undefined && kubeletTimeoutMs <= 0) values.refuse('kubelet-timeout', 'must be more than 0');
  const timeout = kubeletTimeoutMs === undefined ? {} : { kubeletTimeoutMs };
  if (certificate === undefined || key === undefined) {
    if (certificate !== undefined) values.refuse('kubelet-client-key', 'is required with --kubelet-client-certificate');
    return timeout;
  }
  return {
    ...timeout,
    kubelet: {
      certificate: await text(certificate),
      key: await secret(key),
      ...(ca === undefined ? {} : { ca: await text(ca) }),
    },
  };
}

/** The proxy client certificate for aggregated API servers. */
async function proxyClient(
  values: ApiValues,
  { text, secret }: Readers,
): Promise<Pick<ApiServerConfig, 'proxyClient'>> {
  const certificate = values.file('proxy-client-cert-file');
  const key = values.file('proxy-client-key-file');
  if (certificate === undefined && key === undefined) return {};
  if (certificate === undefined)
    return values.refuse('proxy-client-cert-file', 'is required with --proxy-client-key-file');
  if (key === undefined) return values.refuse('proxy-client-key-file', 'is required with --proxy-client-cert-file');
  return { proxyClient: { certificate: await text(certificate), key: await secret(key) } };
}

/**
 * The certificate and key of the flags; otherwise of `--cert-dir`, where a missing pair is generated and self-signed.
 */
async function serving(
  values: ApiValues,
  addresses: { readonly bindAddress: string; readonly advertiseAddress: string; readonly serviceCidr: string },
  { text, secret }: Readers,
): Promise<ApiServerConfig['serving']> {
  const cert = values.file('tls-cert-file');
  const key = values.file('tls-private-key-file');
  if ((cert === undefined) !== (key === undefined)) {
    values.refuse(
      cert === undefined ? 'tls-private-key-file' : 'tls-cert-file',
      'is required: a certificate and its key must be given together',
    );
  }
  if (cert !== undefined && key !== undefined) return { certificate: await text(cert), key: await secret(key) };
  const directory =
    values.file('cert-dir') ?? values.refuse('cert-dir', 'is empty; name a directory, or give --tls-cert-file');
  const files = { cert: join(directory, 'apiserver.crt'), key: join(directory, 'apiserver.key') };
  const present = await text(files.cert).catch(() => undefined);
  if (present !== undefined && stillGood(present)) return { certificate: present, key: await secret(files.key) };
  const service = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const made = await createSelfSigned(
    `${addresses.advertiseAddress}@${Math.floor(clock.nowMs() / 1000)}`,
    {
      dns: ['localhost', ...service, 'kubernetes.default.svc.cluster.local'],
      ips: [
        ...new Set([
          '127.0.0.1',
          '::1',
          addresses.advertiseAddress,
          ...addresses.serviceCidr.split(',').map((cidr) => nthAddress(cidr, 1)),
        ]),
      ],
    },
    lifetimeFrom(clock.nowMs(), YEAR_DAYS),
  );
  try {
    await mkdir(directory, { recursive: true });
    await writeFile(files.key, made.keyPem, { mode: 0o600 });
    await writeFile(files.cert, made.certPem);
  } catch (error) {
    throw new CodedError('unwritable', `${values.label('cert-dir')}: cannot write ${files.cert}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return { certificate: made.certPem, key: made.keyPem };
}

function stillGood(pem: string): boolean {
  try {
    return Date.parse(new X509Certificate(pem).validTo) > clock.nowMs();
  } catch {
    return false;
  }
}

/** One range, or two of different families, as in upstream. Throws ApiUsageProblem. */
function serviceRanges(values: ApiValues): string {
  const text = values.text('service-cluster-ip-range');
  const ranges = parseNetworks(text);
  if (ranges === undefined) return values.refuse('service-cluster-ip-range', `"${text}" is not an address range`);
  if (ranges.length > 2) return values.refuse('service-cluster-ip-range', 'must not contain more than two entries');
  if (ranges.length === 2 && ranges[0]?.family === ranges[1]?.family)
    return values.refuse('service-cluster-ip-range', 'and the second range must be of different IP families');
  return text;
}
