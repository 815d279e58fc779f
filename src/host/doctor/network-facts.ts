/** Reachability of registries, and probes from the network of a pod. */
import { X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { messageOf } from '../../base/errors.ts';
import { entriesOf, runProgram, textOf } from '../../doctor/io/machine/index.ts';
import type { PodProbes, RegistryFacts } from '../../doctor/port.ts';
import type { RegistryHost } from '../../runtime/images/index.ts';
import { OutboundDispatcher } from '../../wire/outbound/connection.ts';
import { DIRECT, type OutboundSettings, proxyFor, settingsFromEnvironment } from '../../wire/outbound/proxy-choice.ts';
import { withoutPassword } from '../config/outbound.ts';
import { registryOptions } from '../config/registries.ts';
import { podObjects } from './cluster-facts.ts';
import type { DoctorContext } from './context.ts';
import { absentFact } from './gather.ts';

const REGISTRY_MS = 4000;
const MAX_REGISTRIES = 20;
const MAX_AUTHORITIES = 20;
/**
 * Status codes by which a proxy reports that it cannot reach the registry. Source: RFC 9110, sections 15.5.8 and 15.6.
 */
const PROXY_FAILURES: ReadonlySet<number> = new Set([407, 502, 503, 504]);
const PROBE_MS = 8000;
const DNS_PORT = 53;
const SERVICE_PORT = 443;
const MAX_PEERS = 8;
const MAX_SANDBOXES = 500;

/**
 * Sends a request to each configured registry. As in an image pull, it uses the registry's trusted authority and the
 * proxy.
 */
export async function registryFacts({ settings }: Pick<DoctorContext, 'settings'>): Promise<RegistryFacts[]> {
  const current = await settings();
  const options = await registryOptions(current);
  const given = current.proxy.noProxy ?? settingsFromEnvironment(process.env).noProxy;
  const { mirrors, insecureRegistries, hosts = {}, outbound = DIRECT } = options;
  const names = [...new Set([...Object.values(mirrors).flat(), ...insecureRegistries, ...Object.keys(hosts)])];
  return Promise.all(
    names.slice(0, MAX_REGISTRIES).map(async (registry) => {
      const url = new URL(`${insecureRegistries.includes(registry) ? 'http' : 'https'}://${registry}/v2/`);
      const proxy = proxyFor(url, outbound);
      const host = hosts[registry] ?? {};
      const problem = await registryProblem(url, outbound, host, { isProxied: proxy !== undefined });
      const found = { registry, proxy: proxy === undefined ? undefined : withoutPassword(proxy), problem };
      if (problem === undefined) return found;
      if (/certificate|issuer/i.test(problem))
        return {
          ...found,
          ...(await installedAuthority(registry, (ca) => registryProblem(url, outbound, { ca }, { isProxied: false }))),
        };
      if (proxy === undefined) return found;
      const isDirect =
        (await registryProblem(url, { ...outbound, noProxy: ['*'] }, host, { isProxied: false })) === undefined;
      return { ...found, isDirect, noProxy: given };
    }),
  );
}

/** Directories in which an administrator may have installed authorities for other programs. */
const authorityDirectories = (registry: string): readonly string[] => [
  '/usr/local/share/ca-certificates',
  `/etc/docker/certs.d/${registry}`,
  `/etc/containers/certs.d/${registry}`,
];

/** The first installed authority that verifies the registry's certificate. The report suggests this file. */
async function installedAuthority(
  registry: string,
  problemWith: (ca: string) => Promise<string | undefined>,
): Promise<{ readonly authorityFile?: string }> {
  for (const directory of authorityDirectories(registry))
    for (const name of (await entriesOf(directory)).slice(0, MAX_AUTHORITIES)) {
      const authorityFile = join(directory, name);
      const text = name.endsWith('.crt') ? await textOf(authorityFile) : '';
      if (text !== '' && (await problemWith(text)) === undefined) return { authorityFile };
    }
  return {};
}

/**
 * Error of a request to a registry; undefined if the registry answers. Every status counts as an answer, except
 * statuses by which a proxy reports a failure.
 */
async function registryProblem(
  url: URL,
  outbound: OutboundSettings,
  { ca, cert, key, skipVerify = false }: RegistryHost,
  { isProxied }: { readonly isProxied: boolean },
): Promise<string | undefined> {
  let dispatcher: OutboundDispatcher | undefined;
  try {
    if (ca !== undefined) new X509Certificate(ca);
    const tls = {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key }),
      rejectUnauthorized: !skipVerify,
    };
    dispatcher = new OutboundDispatcher(outbound, { connectTimeoutMs: REGISTRY_MS, tls });
    const { statusCode, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(REGISTRY_MS) });
    await body.dump();
    return isProxied && PROXY_FAILURES.has(statusCode) ? `the proxy answers ${statusCode}` : undefined;
  } catch (error) {
    return messageOf(error);
  } finally {
    await dispatcher?.destroy();
  }
}

interface Sandbox {
  readonly pod: string;
  readonly network: string;
}

/** Probes from the network namespace of the first running pod that does not use the host's network. */
export async function podProbeFacts(context: DoctorContext): Promise<PodProbes> {
  const { settings, helper } = context;
  const { paths, network, nodeName } = await settings();
  const sandbox = await firstSandbox(paths.containers, join(paths.run, 'containers/sandboxes'));
  if (sandbox === undefined) throw absentFact('no pod with a network of its own runs on this host');
  const [program = '', ...first] = helper;
  const probe = async (...args: readonly string[]): Promise<string | undefined> => {
    const { code, stdout, stderr } = await runProgram(
      'nsenter',
      [`--net=${sandbox.network}`, '--', program, ...first, ...args],
      PROBE_MS,
    );
    if (code !== 0) return stderr.trim().split('\n')[0] ?? `exit ${code}`;
    const { problem }: { problem?: string } = JSON.parse(stdout);
    return problem;
  };
  const pods = (await podObjects(context)).filter(
    ({ spec, status, metadata }) =>
      spec?.hostNetwork !== true &&
      status?.phase === 'Running' &&
      status.podIP !== undefined &&
      `${metadata?.namespace}/${metadata?.name}` !== sandbox.pod,
  );
  const onePerNode = [...new Map(pods.map((pod) => [pod.spec?.nodeName ?? nodeName, pod])).values()];
  const [dns, service, peers] = await Promise.all([
    probe('dns', network.dnsIp, `kubernetes.default.svc.${network.clusterDomain}`),
    probe('tcp', network.apiServiceIp, String(SERVICE_PORT)),
    Promise.all(
      onePerNode.slice(0, MAX_PEERS).map(async ({ metadata, status }) => {
        const address = status?.podIP ?? '';
        return { pod: `${metadata?.namespace}/${metadata?.name}`, address, problem: await probe('tcp', address, '9') };
      }),
    ),
  ]);
  return {
    pod: sandbox.pod,
    dns: { server: `${network.dnsIp}:${DNS_PORT}`, problem: dns },
    service: { address: `${network.apiServiceIp}:${SERVICE_PORT}`, problem: service },
    peers,
  };
}

async function firstSandbox(state: string, run: string): Promise<Sandbox | undefined> {
  for (const id of (await readdir(run).catch(() => [])).slice(0, MAX_SANDBOXES)) {
    const text = await textOf(join(state, 'sandboxes', id, 'record.json'));
    if (text === '') continue;
    const record: { namespace?: unknown; name?: unknown; hostNetwork?: unknown; stopped?: unknown } = JSON.parse(text);
    if (record.hostNetwork !== false || record.stopped !== false) continue;
    return { pod: `${String(record.namespace)}/${String(record.name)}`, network: join(run, id, 'net') };
  }
  return undefined;
}
