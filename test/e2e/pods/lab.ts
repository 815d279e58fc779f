/** Shared environment of the pod tests: one appliance, a live view of its objects, and helpers to write pods. */
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Container, Event, Pod, PodSpec } from '../../../src/api/generated/core/v1.ts';
import { Appliance } from '../harness.ts';
import { helloImage, importHelloImage } from '../images.ts';

type Seen = { readonly metadata?: { readonly namespace?: string; readonly name?: string } };

/** Objects from `kubectl get -w`: no polling, and one process for all tests. */
class LiveView<T extends Seen> {
  readonly objects = new Map<string, T>();
  readonly #process: ChildProcess;
  readonly #waiting = new Set<() => void>();
  #text = '';

  constructor(appliance: Appliance, resource: string) {
    this.#process = appliance.spawnInside('kubectl', [
      'get',
      resource,
      '-A',
      '-w',
      '-o',
      'json',
      '--output-watch-events',
    ]);
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take(text));
  }

  #take(text: string): void {
    const lines = (this.#text + text).split('\n');
    this.#text = lines.pop() ?? '';
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: T };
      const key = `${object.metadata?.namespace}/${object.metadata?.name}`;
      if (type === 'DELETED') this.objects.delete(key);
      else this.objects.set(key, object);
    }
    for (const look of this.#waiting) look();
  }

  /** Resolves with the first value of `probe` other than undefined. */
  when<V>(what: string, timeoutMs: number, probe: () => V | undefined, describe: () => unknown = () => ''): Promise<V> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const value = probe();
        if (value === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`${what}: not within ${timeoutMs} ms; last seen: ${JSON.stringify(describe())}`));
      }, timeoutMs);
      this.#waiting.add(look);
      look();
    });
  }

  stop(): void {
    this.#process.kill('SIGKILL');
  }
}

/** Maximum grace period of the tests' pods; the control plane stops within a few seconds. */
const STOP_SECONDS = 20;

export class PodLab {
  readonly appliance: Appliance;
  readonly scratch: string;
  readonly #pods: LiveView<Pod>;
  readonly #events: LiveView<Event>;

  private constructor(appliance: Appliance, scratch: string) {
    this.appliance = appliance;
    this.scratch = scratch;
    this.#pods = new LiveView(appliance, 'pods');
    this.#events = new LiveView(appliance, 'events');
  }

  /** `prepare` may write files below the appliance's root before it starts. */
  static async create(prepare?: (root: string) => Promise<void>): Promise<PodLab> {
    const scratch = await mkdtemp(join(tmpdir(), 'he-pods-'));
    const appliance = await Appliance.create();
    try {
      await prepare?.(appliance.root);
      await appliance.start();
      await importHelloImage(appliance, scratch);
      return new PodLab(appliance, scratch);
    } catch (error) {
      await appliance.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#pods.stop();
    this.#events.stop();
    const began = performance.now();
    await this.appliance.stop();
    const seconds = (performance.now() - began) / 1000;
    if (seconds > STOP_SECONDS) throw new Error(`stopping took ${seconds} s\n${this.appliance.output.slice(-4_000)}`);
    await rm(this.scratch, { recursive: true, force: true });
  }

  kubectl(...args: string[]): Promise<string> {
    return this.appliance.must(args);
  }

  /** Runs `kubectl apply`. If the response was cut off, prints the state of the host and applies the objects again. */
  async apply(...objects: object[]): Promise<void> {
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const ran = await this.appliance.kubectl(['apply', '-f', '-'], { input });
    if (ran.code === 0) return;
    if (ran.stderr.includes('unexpected EOF')) {
      const status = await this.appliance.hyperedge(['status', '--root', this.appliance.root]);
      console.log(`${ran.stderr}${status.stdout}${status.stderr}${this.appliance.output.slice(-2_000)}`);
    }
    await this.appliance.must(['apply', '-f', '-'], { input });
  }

  pod(name: string, namespace = 'default'): Pod | undefined {
    return this.#pods.objects.get(`${namespace}/${name}`);
  }

  podsOf(prefix: string, namespace = 'default'): Pod[] {
    return [...this.#pods.objects.values()].filter(
      (pod) => pod.metadata?.namespace === namespace && pod.metadata.name?.startsWith(prefix) === true,
    );
  }

  /** Waits until `holds` is true for the pod. */
  until(name: string, what: string, holds: (pod: Pod) => boolean, timeoutMs = 30_000): Promise<Pod> {
    return this.#pods.when(
      `${name} ${what}`,
      timeoutMs,
      () => {
        const pod = this.pod(name);
        return pod !== undefined && holds(pod) ? pod : undefined;
      },
      () => this.pod(name)?.status,
    );
  }

  untilPods<V>(what: string, probe: () => V | undefined, timeoutMs = 30_000): Promise<V> {
    return this.#pods.when(what, timeoutMs, probe, () =>
      [...this.#pods.objects.values()].map((pod) => `${pod.metadata?.name}=${pod.status?.phase}`),
    );
  }

  ready(name: string, timeoutMs?: number): Promise<Pod> {
    return this.until(name, 'ready', isReady, timeoutMs);
  }

  over(name: string, timeoutMs?: number): Promise<Pod> {
    const finished = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    return this.until(name, 'over', finished, timeoutMs);
  }

  gone(name: string, timeoutMs = 30_000): Promise<true> {
    return this.untilPods(`${name} is deleted`, () => (this.pod(name) === undefined ? true : undefined), timeoutMs);
  }

  /** First event about the pod with this reason and text. */
  event(pod: string, reason: string, text: RegExp = /./, timeoutMs = 20_000): Promise<Event> {
    const about = (): Event[] =>
      [...this.#events.objects.values()].filter((event) => event.involvedObject.name === pod);
    return this.#events.when(
      `event ${reason} about ${pod}`,
      timeoutMs,
      () => about().find((event) => event.reason === reason && text.test(event.message ?? '')),
      () => about().map((event) => `${event.reason}: ${event.message}`),
    );
  }

  logs(pod: string, ...args: string[]): Promise<string> {
    return this.kubectl('logs', pod, ...args);
  }

  exec(pod: string, ...command: string[]): Promise<string> {
    return this.kubectl('exec', pod, '--', ...command);
  }

  /** STATUS column of `kubectl get pod`. */
  async shownStatus(pod: string): Promise<string> {
    return (await this.kubectl('get', 'pod', pod, '--no-headers')).split(/ +/)[2] ?? '';
  }

  remove(...pods: string[]): Promise<string> {
    return this.kubectl('delete', 'pod', '--wait=false', '--grace-period=0', '--force', ...pods);
  }
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true;

export function restartsOf(pod: Pod | undefined, container = 'main'): number {
  return pod?.status?.containerStatuses?.find((status) => status.name === container)?.restartCount ?? -1;
}

/** A container that runs a shell script. */
export function shell(script: string, more: Partial<Container> = {}): Container {
  return { name: 'main', image: helloImage, command: ['/bin/sh', '-c', script], ...more };
}

/** A container that idles and ends immediately on SIGTERM. */
export const idle = (more: Partial<Container> = {}): Container => shell("trap 'exit 0' TERM; sleep 1000 & wait", more);

export function pod(name: string, spec: Partial<PodSpec>, metadata: Pod['metadata'] = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', ...metadata, name },
    spec: { terminationGracePeriodSeconds: 1, containers: [idle()], ...spec },
  };
}

export const configMap = (name: string, data: Record<string, string>): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});

export const secret = (name: string, stringData: Record<string, string>): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default' },
  stringData,
});

/** Parses `NAME=value` lines, for example the output of env(1). */
export function assignments(text: string): Map<string, string> {
  return new Map(
    text
      .split('\n')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
