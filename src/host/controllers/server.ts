/** `hyperedge controllers`: the controllers and the scheduler in one process, each under its own identity and lease. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { resources } from '../../api/resources.ts';
import { loadSigningKey, signToken } from '../../apiserver/authentication/jwt.ts';
import { decodeJson, list, text as string } from '../../base/decode.ts';
import { CodedError } from '../../base/errors.ts';
import { omitUndefined } from '../../base/json/omit-fields.ts';
import type { Log } from '../../base/log.ts';
import {
  Competition,
  createEventRecorder,
  createLeaderElector,
  type EventRecorder,
  type InformerFactory,
  type LeaderElectorOptions,
} from '../../client/index.ts';
import { CONTROLLERS_LEASE, type ControllersOptions } from '../../controllers/framework/deps.ts';
import { followFailedHosts } from '../../controllers/nodes/node-lifecycle/failed-hosts-controller.ts';
import type { RingView } from '../../controllers/nodes/node-lifecycle/ring-port.ts';
import { followRing } from '../../gossip/agent/index.ts';
import { openshiftOf } from '../../openshift/oauth/config/login-config.ts';
import { createCatalogFiles } from '../../openshift/operators/olm/io/index.ts';
import { createCertificateSigner, loadAuthority } from '../../pki/index.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { findImage } from '../../runtime/images/index.ts';
import { createScheduler, SCHEDULER_LEASE } from '../../scheduler/index.ts';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../../wire/connections/gate.ts';
import { GatedServer } from '../../wire/connections/gated-server.ts';
import { HttpConnection } from '../../wire/connections/http-connection.ts';
import { sha256Hex } from '../../wire/digest.ts';
import { readReferenced, readSecret } from '../config/files.ts';
import { type FollowedFile, followFile } from '../config/followed-file.ts';
import { type MasterConfig, parseBindAddress, readMasterConfig, resolveRelativeTo } from '../config/master-config.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { createControllers } from './controllers.ts';
import { machineConfigFacts } from './machine-config.ts';
import { machineProvisioner } from './machines.ts';
import { installedPair, routerFacts } from './router-facts.ts';
import { configureScheduler } from './scheduler.ts';

interface CatalogPlaces {
  readonly catalogs: string;
  readonly images: string;
}

const catalogFiles = ({ catalogs, images }: CatalogPlaces) =>
  createCatalogFiles({ directory: catalogs, findImage: (image) => findImage(images, trees, image) });

export interface Component {
  /** Resolves when the component has stopped. */
  stop(): Promise<void>;
  /** Milliseconds that a stop may take beyond the default time limit. */
  readonly patienceMs?: number;
}

export interface ComponentOptions {
  readonly configFile: string;
  /** Agent socket of the host process, through which the controllers follow the gossip ring. */
  readonly agentSocket?: string;
  /** Directories with the catalogs and images of this host. */
  readonly places?: CatalogPlaces;
  readonly log: Log;
  /** Stops the component and ends the process. */
  readonly onFatal: (error: Error) => void;
}

/**
 * Starts the controllers and the scheduler with the files of master-config.yaml. Throws CodedErrors that name the file
 * and the field.
 */
export async function startControllers(options: ComponentOptions): Promise<Component> {
  const { configFile, agentSocket, log, onFatal } = options;
  const config = await readMasterConfig(configFile);
  const at = (path: string): string => resolveRelativeTo(configFile, path);
  const authority = await readAuthority(configFile, config);
  const clients = await openClients(config, at, log);
  // Controllers and scheduler share informers, because they watch nearly the same kinds.
  const informers = clients.controllers.newInformers();
  const identity = await candidateIdentity(configFile);
  const configured = await configureScheduler(config.controllerConfig?.schedulerConfigFile, at);
  const competition = new Competition();
  competition.follow(informers.informer(resources.nodes));
  const candidate = { identity, competition };
  // Without an agent socket there is no gossip ring to follow.
  const view =
    agentSocket === undefined ? undefined : followRing({ socket: agentSocket, clock, log: log.named('gossip') });
  const managed = roleOf(clients.controllers, 'controllers', { ...CONTROLLERS_LEASE, ...candidate }, log);
  const controllers = createControllers({
    ...managed.deps,
    ...clusterDeps(options, config, authority),
    informers,
    log: log.named('controllers'),
    ringAddress: (name) => view?.addressOf(name),
    machineConfig: machineConfigFacts(() => view?.storeLeader()),
  });
  const scheduling = roleOf(clients.scheduler, 'default-scheduler', { ...SCHEDULER_LEASE, ...candidate }, log);
  const scheduler = createScheduler({
    ...scheduling.deps,
    ...configured.deps,
    informers,
    log: log.named('scheduler'),
  });
  const ring = followHosts(view, clients.controllers.client, informers, managed.deps.recorder, log);
  const health = await serveHealth(configFile, config, log);
  const changes = await endOnChange(authority.files, log, onFatal);
  await controllers.start();
  await scheduler.start();
  return {
    stop: async () => {
      changes.stop();
      ring?.stop();
      await Promise.all([controllers.stop(), scheduler.stop()]);
      await Promise.all([managed.deps.recorder.stop(), scheduling.deps.recorder.stop()]);
      await informers.stop();
      await configured.close();
      await Promise.all([clients.controllers.close(), clients.scheduler.close()]);
      await health.stop();
    },
  };
}

interface Authority {
  readonly certPem: string;
  readonly keyPem: string;
  readonly rootCaPem: string;
  readonly kubeletCaPem: string;
  readonly tokenKey: ReturnType<typeof loadSigningKey>;
  /** Paths of the files. A change of one of them needs a new process. */
  readonly files: readonly string[];
  /** Directory of the signer's certificate. */
  readonly directory: string;
}

/** Reads the cluster's authorities and the key of service account tokens. */
async function readAuthority(configFile: string, config: MasterConfig): Promise<Authority> {
  const at = (path: string): string => resolveRelativeTo(configFile, path);
  const signer = config.controllerConfig?.signer;
  if (signer === undefined) throw new CodedError('bad-config', `${configFile}: controllerConfig.signer is missing`);
  const { masterCA, privateKeyFile } = config.serviceAccountConfig;
  const kubeletCa = config.kubeletClientInfo.ca;
  const [certPem, keyPem, rootCaPem, kubeletCaPem, tokenKeyPem] = await Promise.all([
    readReferenced(at(signer.certFile), configFile),
    readSecret(at(signer.keyFile), configFile),
    readReferenced(at(masterCA), configFile),
    readReferenced(at(kubeletCa), configFile),
    readSecret(at(privateKeyFile), configFile),
  ]);
  const files = [signer.certFile, masterCA, kubeletCa, privateKeyFile].map(at);
  const directory = dirname(at(signer.certFile));
  return { certPem, keyPem, rootCaPem, kubeletCaPem, tokenKey: loadSigningKey(tokenKeyPem), files, directory };
}

interface Clients {
  readonly controllers: OpenedClient;
  readonly scheduler: OpenedClient;
}

async function openClients({ masterClients }: MasterConfig, at: (path: string) => string, log: Log): Promise<Clients> {
  const context = { clock, random, log };
  const kubeConfig = at(masterClients.openshiftLoopbackKubeConfig);
  return {
    controllers: await openClient(kubeConfig, 'kube-controller-manager/hyperedge', context),
    scheduler: await openClient(at(masterClients.schedulerKubeConfig), 'kube-scheduler/hyperedge', context),
  };
}

/** Client, recorder and elector of one role. The client writes only while the process holds the lease. */
function roleOf(opened: OpenedClient, component: string, lease: Candidacy, log: Log) {
  const elector = electorOf(opened, lease, log);
  const recorder = recorderOf(opened, component, log);
  return { deps: { client: opened.client.fenced(elector.fence), recorder, elector, clock, random } };
}

/** Facts of this cluster and host for the controllers. */
function clusterDeps({ configFile, places }: ComponentOptions, config: MasterConfig, authority: Authority) {
  const { masterPublicURL, clusterSettings } = config;
  const { certPem, keyPem, rootCaPem: caPem, kubeletCaPem, tokenKey, directory } = authority;
  const openshift = openshiftOf(config.openshift);
  const clusterFacts =
    masterPublicURL === undefined
      ? undefined
      : { publicUrl: masterPublicURL, caPem, kubeletCaPem, settings: Object.fromEntries(clusterSettings ?? []) };
  return {
    signer: createCertificateSigner(loadAuthority(certPem, keyPem)),
    rootCaPem: caPem,
    signServiceAccountToken: (claims: Parameters<typeof signToken>[1]) => signToken(tokenKey, claims),
    options: optionsOf(config),
    machines: machineProvisioner(configFile),
    ...omitUndefined({ clusterFacts, catalogFiles: places === undefined ? undefined : catalogFiles(places) }),
    router: routerFacts(
      {
        ...openshift,
        clusterDomain: clusterSettings?.get('clusterDomain'),
        hasConsole: openshift.profile === 'okd' && (config.console?.enabled ?? true),
      },
      loadAuthority(certPem, keyPem),
      () => installedPair(directory),
      masterPublicURL === undefined ? [] : [new URL(masterPublicURL).hostname],
    ),
  };
}

type Candidacy = Pick<LeaderElectorOptions, 'namespace' | 'name' | 'identity' | 'competition'>;

/** Delay before events are sent. The changes that events report cause more urgent requests. */
const EVENTS_MS = 200;

const recorderOf = ({ client }: OpenedClient, component: string, log: Log): EventRecorder =>
  createEventRecorder({ client, component, settleMs: EVENTS_MS, clock, random, log });

const electorOf = ({ client }: OpenedClient, lease: Candidacy, log: Log): ReturnType<typeof createLeaderElector> =>
  createLeaderElector({ client, ...lease, clock, random, log });

function optionsOf({ controllerConfig, networkConfig, openshift }: MasterConfig): Partial<ControllersOptions> {
  const { localVolumes = true, serviceLoadBalancer } = controllerConfig ?? {};
  const clusters = networkConfig?.clusterNetworks ?? [];
  const serviceCidr = networkConfig?.serviceNetworkCIDR;
  return {
    accountSecrets: openshift?.profile === 'okd',
    daemonPods: openshift?.profile === 'okd',
    localVolumes,
    loadBalancerAddresses: serviceLoadBalancer?.addresses ?? [],
    disabled: serviceLoadBalancer?.enabled === false ? ['service-lb'] : [],
    ...(clusters.length === 0 ? {} : { clusterCidr: clusters.map(({ cidr }) => cidr).join() }),
    ...maskSizes(clusters),
    ...(serviceCidr === undefined ? {} : { serviceCidr }),
  };
}

function followHosts(
  ring: RingView | undefined,
  client: OpenedClient['client'],
  informers: InformerFactory,
  recorder: EventRecorder,
  log: Log,
): ReturnType<typeof followFailedHosts> | undefined {
  if (ring === undefined) return undefined;
  // This client ignores the leadership of the controllers: the failed host may be the current leader.
  return followFailedHosts({
    ring,
    client,
    informers,
    recorder,
    clock,
    log: log.named('failed-hosts'),
  });
}

/**
 * Ends the process when rotated authorities or keys have changed. The end releases the leases; then the kubelet
 * restarts the container, which uses the new files.
 */
async function endOnChange(files: readonly string[], log: Log, onFatal: (error: Error) => void): Promise<Followed> {
  const read = async (): Promise<string> => {
    const texts = await Promise.all(files.map((file) => readFile(file)));
    return sha256Hex(Buffer.concat(texts));
  };
  return followFile(files.join(', '), {
    what: 'authority',
    log,
    first: read,
    read,
    files,
    parse: (digest) => digest,
    changed: () =>
      onFatal(new CodedError('authority-changed', 'an authority or key has changed; starting again with it')),
  });
}

type Followed = Pick<FollowedFile<unknown>, 'stop'>;

/**
 * Connection limits of the health endpoint. The kubelet's probes and monitoring send requests without authentication.
 */
const HEALTH_LIMITS: GateLimits = {
  authenticated: 0,
  unauthenticated: 32,
  idleMs: 0,
  unauthenticatedIdleMs: 15_000,
  handshakeMs: 32_000,
};

/** The endpoint of the kubelet's liveness probe. Any response shows that the event loop runs. */
async function serveHealth(configFile: string, config: MasterConfig, log: Log): Promise<Component> {
  const bind = parseBindAddress(config.controllerConfig?.healthBindAddress ?? '127.0.0.1:8444');
  const files = [config.servingInfo.certFile, config.servingInfo.keyFile].map((path) =>
    resolveRelativeTo(configFile, path),
  );
  const [certFile = '', keyFile = ''] = files;
  const followed = await followFile(files.join(', '), {
    what: 'health certificate',
    log,
    first: async () =>
      JSON.stringify([await readReferenced(certFile, configFile), await readSecret(keyFile, configFile)]),
    read: async () => JSON.stringify(await Promise.all(files.map((file) => readFile(file, 'utf8')))),
    files,
    parse: pairOf,
    changed: () => server.setSecureContext(followed.current),
  });
  const server = createServer(followed.current);
  const gate = new ConnectionGate(HEALTH_LIMITS);
  const gated = new GatedServer(
    server,
    gate,
    (socket: TLSSocket, admitted: GatedConnection) => new HttpConnection(socket, admitted),
  );
  server.prependListener('secureConnection', (socket) => {
    if (gated.secured(socket) === undefined) socket.destroy();
  });
  server.on('request', (request, response) => {
    const connection = gated.of(request.socket);
    if (connection === undefined || !connection.admits()) return;
    connection.response = response;
    connection.identified('anonymous');
    const known = request.url === '/healthz' || request.url === '/livez' || request.url === '/readyz';
    response.writeHead(known ? 200 : 404, { 'content-type': 'text/plain' }).end(known ? 'ok' : 'not found\n');
  });
  const field = `${configFile}: controllerConfig.healthBindAddress`;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new CodedError(
          error.code === 'EADDRINUSE' ? 'address-in-use' : 'listen',
          `${field}: cannot listen on ${bind?.address}:${bind?.port}: ${error.message}`,
          { cause: error },
        ),
      );
    });
    server.listen(bind?.port, bind?.address, resolve);
  });
  server.on('error', (error) => log.warn('health endpoint failed', { error: error.message }));
  return {
    stop: () =>
      new Promise((resolve) => {
        gate.stop();
        followed.stop();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Throws an Error if certificate and key do not match, which is possible for a moment during a renewal. */
function pairOf(text: string): { readonly cert: string; readonly key: string } {
  const [cert = '', key = ''] = decodeJson(list(string), text, 'certificate and key');
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error('the key does not belong to the certificate');
  return { cert, key };
}

/**
 * Holder identity in the leader election leases. It is the same after a restart, so that the new process renews the
 * lease instead of waiting for its expiry. The old process has always exited before the kubelet starts the new one.
 */
async function candidateIdentity(configFile: string): Promise<string> {
  const machine = await readFile('/etc/machine-id', 'utf8').catch(() => '');
  const digest = sha256Hex(`${machine.trim()}\n${configFile}`);
  return `${hostname()}_${digest.slice(0, 8)}`;
}

function maskSizes(
  clusters: ReadonlyArray<{ readonly cidr: string; readonly hostSubnetLength: number }>,
): Partial<ControllersOptions> {
  const v4 = clusters.find(({ cidr }) => !cidr.includes(':'));
  const v6 = clusters.find(({ cidr }) => cidr.includes(':'));
  return {
    ...(v4 === undefined ? {} : { nodeCidrMaskSize: 32 - v4.hostSubnetLength }),
    ...(v6 === undefined ? {} : { nodeCidrMaskSizeIpv6: 128 - v6.hostSubnetLength }),
  };
}
