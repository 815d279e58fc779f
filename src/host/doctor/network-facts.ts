/** Reachability of registries, and probes from the network of a pod. */
import { X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { runProgram, textOf } from '../../doctor/io/machine/index.ts';
import type { PodProbes, RegistryFacts } from '../../doctor/port.ts';
import { registryOptions } from '../config/registries.ts';
import { podObjects } from './cluster-facts.ts';
import type { DoctorContext } from './context.ts';
import { absent } from './gather.ts';

const REGISTRY_MS = 4000;
const PROBE_MS = 8000;
const DNS_PORT = 53;
const SERVICE_PORT = 443;
const MAX_PEERS = 8;
const MAX_SANDBOXES = 500;

export async function registryFacts({ settings }: DoctorContext): Promise<RegistryFacts[]> {
  const { mirrors, insecureRegistries, hosts = {} } = await registryOptions(await settings());
  const names = [...new Set([...Object.values(mirrors).flat(), ...insecureRegistries, ...Object.keys(hosts)])];
  return Promise.all(
    names.slice(0, 20).map(async (registry) => {
      const { ca, cert, key, skipVerify } = hosts[registry] ?? {};
      const problem = insecureRegistries.includes(registry)
        ? await plainProblem(registry)
        : await secureProblem(registry, { ca, cert, key, rejectUnauthorized: skipVerify !== true });
      return { registry, proxy: undefined, problem };
    }),
  );
}

/** Any HTTP status shows that the registry answers. */
async function plainProblem(registry: string): Promise<string | undefined> {
  try {
    await fetch(`http://${registry}/v2/`, { signal: AbortSignal.timeout(REGISTRY_MS), redirect: 'manual' });
    return undefined;
  } catch (error) {
    return messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
  }
}

function secureProblem(
  registry: string,
  tls: {
    readonly ca: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
    readonly rejectUnauthorized: boolean;
  },
): Promise<string | undefined> {
  return new Promise((resolve) => {
    try {
      if (tls.ca !== undefined) new X509Certificate(tls.ca);
      const outgoing = request(`https://${registry}/v2/`, { ...tls, timeout: REGISTRY_MS }, (response) => {
        response.destroy();
        resolve(undefined);
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${REGISTRY_MS / 1000} s`)));
      outgoing.on('error', (error) => resolve(messageOf(error)));
      outgoing.end();
    } catch (error) {
      resolve(messageOf(error));
    }
  });
}

interface Sandbox {
  readonly pod: string;
  readonly network: string;
}

/** Probes from the network of the first running pod that has one of its own. */
export async function podProbeFacts(context: DoctorContext): Promise<PodProbes> {
  const { settings, helper } = context;
  const { paths, network, nodeName } = await settings();
  const sandbox = await firstSandbox(paths.containers, join(paths.run, 'containers/sandboxes'));
  if (sandbox === undefined) throw absent('no pod with a network of its own runs on this host');
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
