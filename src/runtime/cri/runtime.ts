/** Implements the container runtime port over the container runtime interface (CRI) of containerd and CRI-O. */

import { toUid } from '../../base/brand.ts';
import { decodeJson, list, number, object, optional, text } from '../../base/decode.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { RpcCode } from '../../wire/grpc/port.ts';
import {
  type ContainerStats,
  type ContainerStatus,
  type ProcessStreams,
  type Runtime,
  RuntimeError,
  type RuntimeFeatures,
  type SandboxStatus,
} from '../port.ts';
import { CriCalls, TIMEOUT_MS } from './calls.ts';
import type { Draft, Message, MessageType } from './codec.ts';
import { configOf, containerDraft, NOTES, ownAnnotations, resourcesDraft, sandboxDraft } from './configs.ts';
import { criImages } from './images.ts';
import * as messages from './messages.ts';
import type { CriHost } from './port.ts';
import { openStreams } from './streams.ts';

/** Interval of upstream's generic PLEG. Polling is needed because not every runtime reports events. */
const RELIST_MS = 1_000;
const STATES = ['created', 'running', 'exited', 'unknown'] as const;
const POLL_MS = 50;

export interface CriDeps {
  /** `unix:///run/containerd/containerd.sock`, or only the path. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly host: CriHost;
}

export interface CriRuntime extends Runtime {
  /** Throws RuntimeError 'internal' if the endpoint does not answer. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createCriRuntime(deps: CriDeps): CriRuntime {
  return new RemoteRuntime(deps);
}

class RemoteRuntime implements CriRuntime {
  readonly images: Runtime['images'];
  readonly #deps: CriDeps;
  readonly #calls: CriCalls;
  readonly #listeners = new Set<(hint: { readonly sandboxId: string }) => void>();
  #timer: Timer | undefined;
  #seen = new Map<string, string>();
  #strictGroups = false;
  #features: RuntimeFeatures = { recursiveReadOnlyMounts: false, selinux: false };

  constructor(deps: CriDeps) {
    this.#deps = deps;
    this.#calls = new CriCalls(deps);
    this.images = criImages(this.#calls);
  }

  async start(): Promise<void> {
    await this.version();
    const { handlers, features } = await this.#runtime('Status', [messages.idOnly, {}], messages.statusResponse);
    this.#strictGroups = features?.supplementalGroupsPolicy === true;
    const [first] = handlers;
    this.#features = {
      selinux: false,
      recursiveReadOnlyMounts: first?.features?.recursiveReadOnly === true,
      ...(handlers.length === 0
        ? {}
        : {
            handlers: handlers.map((each) => ({
              name: each.name,
              recursiveReadOnlyMounts: each.features?.recursiveReadOnly === true,
              userNamespaces: each.features?.userNamespaces === true,
            })),
          }),
    };
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#listeners.clear();
    this.#calls.close();
  }

  async version(): Promise<{ readonly runtimeName: string; readonly runtimeVersion: string }> {
    const { name, version } = await this.#runtime('Version', [messages.idOnly, {}], messages.versionResponse);
    return { runtimeName: name, runtimeVersion: version };
  }

  features(): Promise<RuntimeFeatures> {
    return Promise.resolve(this.#features);
  }

  async runPodSandbox(config: Parameters<Runtime['runPodSandbox']>[0]): Promise<string> {
    const request = { config: sandboxDraft(config), handler: config.runtimeHandler };
    const options = { otherwise: 'create-failed' } as const;
    await this.#deps.host.makeDirectory(config.logDirectory);
    return (await this.#runtime('RunPodSandbox', [messages.runPodSandbox, request], messages.idOnly, options)).id;
  }

  async stopPodSandbox(id: string): Promise<void> {
    await ignoreMissing(this.#runtime('StopPodSandbox', [messages.idOnly, { id }], {}));
  }

  async removePodSandbox(id: string): Promise<void> {
    await this.stopPodSandbox(id);
    await ignoreMissing(this.#runtime('RemovePodSandbox', [messages.idOnly, { id }], {}));
  }

  async listPodSandboxes(): Promise<readonly SandboxStatus[]> {
    const { items } = await this.#runtime('ListPodSandbox', [messages.idOnly, {}], messages.listResponse);
    const found = await Promise.all(items.map(({ id }) => this.#sandbox(id)));
    return found.filter((each) => each !== undefined).map(describeSandbox);
  }

  async createContainer(
    sandboxId: string,
    config: Parameters<Runtime['createContainer']>[1],
    signal?: AbortSignal,
  ): Promise<string> {
    const sandbox = await this.#sandbox(sandboxId);
    if (sandbox === undefined) throw new RuntimeError('not-found', `pod sandbox ${sandboxId} does not exist`);
    if (sandbox.state !== 0) throw new RuntimeError('create-failed', `pod sandbox ${sandboxId} has been stopped`);
    if ((await this.images.status(config.imageId)) === undefined)
      throw new RuntimeError('image-not-found', `image ${config.image} is not present`);
    for (const { hostPath } of config.mounts)
      if (!(await this.#deps.host.isThere(hostPath)))
        throw new RuntimeError('create-failed', `${hostPath}: no such file or directory`);
    const options = { strictGroups: this.#strictGroups };
    const draft = containerDraft(sandboxId, configOf(sandbox.annotations), config, options);
    const codes = { [RpcCode.notFound]: 'create-failed' } as const;
    const request = [messages.createContainer, draft] as const;
    const call = { otherwise: 'create-failed', codes, signal } as const;
    return (await this.#runtime('CreateContainer', request, messages.idOnly, call)).id;
  }

  async startContainer(id: string): Promise<void> {
    await this.#runtime('StartContainer', [messages.idOnly, { id }], {}, { otherwise: 'start-failed' });
    this.#relistSoon();
  }

  /**
   * Stops a container. The kubelet sends a stop signal from the pod spec itself, because runtimes before KEP-4960 use
   * only the image's signal.
   */
  async stopContainer(id: string, graceSeconds: number): Promise<void> {
    const found = await this.#container(id);
    if (found === undefined || found.state !== 'running') return;
    let timeout = graceSeconds;
    if (found.stopSignal !== undefined && found.pid > 0) {
      const { host } = this.#deps;
      host.kill(found.pid, host.signalNumber(found.stopSignal));
      if (await this.#endsWithin(id, graceSeconds * 1000)) return;
      timeout = 0;
    }
    const timeoutMs = timeout * 1000 + TIMEOUT_MS;
    await ignoreMissing(this.#runtime('StopContainer', [messages.stopContainer, { id, timeout }], {}, { timeoutMs }));
    this.#relistSoon();
  }

  async removeContainer(id: string): Promise<void> {
    await ignoreMissing(this.#runtime('RemoveContainer', [messages.idOnly, { id }], {}));
  }

  async listContainers(): Promise<readonly ContainerStatus[]> {
    const { containers } = await this.#runtime(
      'ListContainers',
      [messages.idOnly, {}],
      messages.listContainersResponse,
    );
    const found = await Promise.all(containers.map(({ id, sandboxId }) => this.#container(id, sandboxId)));
    return found.filter((each) => each !== undefined);
  }

  async execSync(
    id: string,
    command: readonly string[],
    { timeoutMs, maxOutputBytes }: Parameters<Runtime['execSync']>[2],
  ): ReturnType<Runtime['execSync']> {
    await this.#running(id);
    const request = { id, command, timeout: Math.ceil(timeoutMs / 1000) };
    const codes = { [RpcCode.deadlineExceeded]: 'timeout' } as const;
    const options = { timeoutMs: timeoutMs === 0 ? TIMEOUT_MS : timeoutMs + 10_000, codes };
    const { stdout, stderr, exitCode } = await this.#runtime(
      'ExecSync',
      [messages.execSync, request],
      messages.execSyncResponse,
      { ...options, otherwise: 'start-failed' },
    );
    return { stdout: stdout.subarray(0, maxOutputBytes), stderr: stderr.subarray(0, maxOutputBytes), exitCode };
  }

  async exec(id: string, options: Parameters<Runtime['exec']>[1]): Promise<ProcessStreams> {
    await this.#running(id);
    const { command, stdin, stdout, tty } = options;
    const request = { id, command, stdin, stdout, tty, stderr: options.stderr && !tty };
    const { url } = await this.#runtime('Exec', [messages.exec, request], messages.urlResponse);
    return openStreams(url, { ...options, stderr: options.stderr && !tty });
  }

  async attach(id: string, options: Parameters<Runtime['attach']>[1]): Promise<ProcessStreams> {
    await this.#running(id);
    const { stdin, stdout, tty } = options;
    const request = { id, stdin, stdout, tty, stderr: options.stderr && !tty };
    const { url } = await this.#runtime('Attach', [messages.attach, request], messages.urlResponse);
    return openStreams(url, { ...options, stderr: options.stderr && !tty });
  }

  async portForward(sandboxId: string, port: number): ReturnType<Runtime['portForward']> {
    const request = [messages.containerStatusRequest, { id: sandboxId, verbose: true }] as const;
    const { status, info } = await this.#runtime('PodSandboxStatus', request, messages.sandboxStatusResponse);
    if (status?.state !== 0) throw new RuntimeError('not-found', `pod sandbox ${sandboxId} has been stopped`);
    return this.#deps.host.connect(configOf(status.annotations).hostNetwork ? undefined : networkIn(info), port);
  }

  async updateContainerResources(id: string, resources: Parameters<Runtime['updateContainerResources']>[1]) {
    const request = [messages.updateResources, { id, linux: resourcesDraft(resources) }] as const;
    await this.#runtime('UpdateContainerResources', request, {});
  }

  async containerStats(id: string): Promise<ContainerStats | undefined> {
    const { stats } = await this.#runtime('ContainerStats', [messages.idOnly, { id }], messages.statsResponse);
    if (stats?.cpu === undefined || stats.memory === undefined) return undefined;
    const { cpu, memory } = stats;
    return {
      timestampMs: cpu.timestamp,
      cpuUsageCoreNanoSeconds: cpu.used?.value ?? 0,
      memoryWorkingSetBytes: memory.workingSet?.value ?? 0,
      memoryUsageBytes: memory.usage?.value ?? memory.workingSet?.value ?? 0,
      memoryRssBytes: memory.rss?.value ?? 0,
      // CRI does not report the number of processes.
      pids: await this.#deps.host.processes((await this.#container(id))?.pid ?? 0).catch(() => 0),
    };
  }

  async writableLayers(
    ids: readonly string[],
    { unit }: { readonly unit: 'bytes' | 'inodes' },
  ): Promise<ReadonlyMap<string, number>> {
    const used = new Map<string, number>();
    for (const id of ids) {
      const { stats } = await this.#runtime('ContainerStats', [messages.idOnly, { id }], messages.statsResponse).catch(
        () => ({ stats: undefined }),
      );
      if (stats?.writable !== undefined) used.set(id, stats.writable[unit]?.value ?? 0);
    }
    return used;
  }

  async reopenContainerLog(id: string): Promise<void> {
    await this.#runtime('ReopenContainerLog', [messages.idOnly, { id }], {});
  }

  async checkpointContainer(id: string, location: string): Promise<void> {
    await this.#runtime('CheckpointContainer', [messages.checkpointContainer, { id, location }], {});
  }

  onChange(listener: (hint: { readonly sandboxId: string }) => void): () => void {
    this.#listeners.add(listener);
    this.#arm();
    return () => this.#listeners.delete(listener);
  }

  #runtime<Q extends MessageType, A extends MessageType>(
    method: string,
    request: readonly [Q, Draft<Q>],
    answer: A,
    options?: Parameters<CriCalls['call']>[3],
  ): Promise<Message<A>> {
    return this.#calls.call(`RuntimeService/${method}`, request, answer, options);
  }

  async #sandbox(id: string): Promise<Message<typeof messages.sandboxStatus> | undefined> {
    const request = [messages.idOnly, { id }] as const;
    return missingAsUndefined(
      this.#runtime('PodSandboxStatus', request, messages.sandboxStatusResponse).then(({ status }) => status),
    );
  }

  async #container(id: string, sandboxId?: string): Promise<ContainerStatus | undefined> {
    const request = [messages.containerStatusRequest, { id, verbose: true }] as const;
    const answer = await missingAsUndefined(
      this.#runtime('ContainerStatus', request, messages.containerStatusResponse),
    );
    return answer?.status === undefined ? undefined : describeContainer(answer.status, answer.info, sandboxId);
  }

  async #running(id: string): Promise<void> {
    const found = await this.#container(id);
    if (found?.state !== 'running')
      throw new RuntimeError('not-found', `container ${found?.name ?? id} is not running`);
  }

  async #endsWithin(id: string, ms: number): Promise<boolean> {
    const { clock } = this.#deps;
    for (const deadline = clock.monotonicMs() + ms; clock.monotonicMs() < deadline; ) {
      if ((await this.#container(id))?.state !== 'running') return true;
      await new Promise<void>((resolve) => clock.setTimer(POLL_MS, resolve));
    }
    return false;
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#listeners.size === 0) return;
    this.#timer = this.#deps.clock.setTimer(RELIST_MS, () => void this.#relist());
  }

  #relistSoon(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#listeners.size > 0) this.#timer = this.#deps.clock.setTimer(0, () => void this.#relist());
  }

  async #relist(): Promise<void> {
    try {
      const containers = await this.listContainers();
      const seen = new Map(containers.map(({ id, state, sandboxId }) => [id, `${state} ${sandboxId}`]));
      const changed = new Set<string>();
      for (const [id, state] of [...seen, ...this.#seen])
        if (seen.get(id) !== this.#seen.get(id)) changed.add(state.split(' ')[1] ?? '');
      this.#seen = seen;
      for (const sandboxId of changed) for (const listener of [...this.#listeners]) listener({ sandboxId });
    } catch (error) {
      this.#deps.log.v(2, 'container runtime not listed', { error: messageOf(error) });
    }
    this.#timer = undefined;
    this.#arm();
  }
}

async function missingAsUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof RuntimeError && error.code === 'not-found') return undefined;
    throw error;
  }
}

const ignoreMissing = async (work: Promise<unknown>): Promise<void> => void (await missingAsUndefined(work));

const SANDBOX_INFO = object({
  runtimeSpec: optional(
    object({
      linux: optional(object({ namespaces: optional(list(object({ type: text, path: optional(text) }))) })),
    }),
  ),
});
const CONTAINER_INFO = object({ pid: optional(number), sandboxID: optional(text) });

/** Path of the pod's network namespace. Throws RuntimeError 'network' if the runtime does not report it. */
function networkIn(info: Readonly<Record<string, string>>): string {
  const { runtimeSpec } = decodeJson(SANDBOX_INFO, info['info'] ?? '{}', 'info of a sandbox');
  const path = runtimeSpec?.linux?.namespaces?.find(({ type }) => type === 'network')?.path;
  if (path === undefined) throw new RuntimeError('network', 'the container runtime does not report network namespaces');
  return path;
}

function describeSandbox(status: Message<typeof messages.sandboxStatus>): SandboxStatus {
  const { metadata, network } = status;
  const ips = [network?.ip ?? '', ...(network?.more ?? []).map(({ ip }) => ip)].filter((ip) => ip !== '');
  const note = status.annotations[NOTES.sandbox];
  const hostNetwork = note !== undefined && configOf(status.annotations).hostNetwork;
  return {
    id: status.id,
    name: metadata?.name ?? '',
    namespace: metadata?.namespace ?? '',
    uid: toUid(metadata?.uid),
    attempt: metadata?.attempt ?? 0,
    state: status.state === 0 ? 'ready' : 'notready',
    createdAtMs: status.createdAt,
    ips: hostNetwork ? [] : ips,
    hostNetwork,
    labels: { ...status.labels },
    annotations: ownAnnotations(status.annotations),
  };
}

function describeContainer(
  status: Message<typeof messages.containerStatus>,
  info: Readonly<Record<string, string>>,
  sandboxId: string | undefined,
): ContainerStatus {
  const { annotations, metadata, user } = status;
  const stopSignal = annotations[NOTES.stopSignal];
  const more = decodeJson(CONTAINER_INFO, info['info'] ?? '{}', 'info of a container');
  const state = STATES[status.state] ?? 'unknown';
  return {
    id: status.id,
    sandboxId: sandboxId ?? more.sandboxID ?? '',
    name: metadata?.name ?? '',
    attempt: metadata?.attempt ?? 0,
    image: annotations[NOTES.image] ?? status.image?.image ?? '',
    imageId: status.imageId === '' ? status.imageRef : status.imageId,
    state,
    createdAtMs: status.createdAt,
    startedAtMs: status.startedAt,
    finishedAtMs: status.finishedAt,
    exitCode: status.exitCode,
    reason: status.reason,
    message: status.message,
    logPath: status.logPath,
    pid: state === 'exited' ? 0 : (more.pid ?? 0),
    ...(user?.linux === undefined ? {} : { user: user.linux }),
    ...(stopSignal === undefined ? {} : { stopSignal }),
    labels: { ...status.labels },
    annotations: ownAnnotations(annotations),
  };
}
