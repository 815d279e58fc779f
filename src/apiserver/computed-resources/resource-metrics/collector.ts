/**
 * Reads CPU and memory usage from the kubelets, but only while metrics are requested, so that an idle cluster is not
 * scraped. Source: sigs.k8s.io/metrics-server/pkg/scraper.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { messageOf } from '../../../base/errors.ts';
import { type NodeReadings, type Reading, readExposition } from '../../../metrics/core/exposition.ts';
import { type ResourceUsage, usageOf } from '../../../metrics/core/usage.ts';
import type { BackendContext, ServerContext } from '../../rest/context.ts';
import { kubeletOf } from '../../streaming/targets.ts';

type CollectorContext = BackendContext & Pick<ServerContext, 'certificates' | 'config' | 'log'>;

const PERIOD_MS = 15_000;
/** Time without requests after which the collection stops. */
const IDLE_MS = 5 * 60_000;
/** Interval between the first two readings of a node. */
const FIRST_WINDOW_MS = 1_000;
const TIMEOUT_MS = 10_000;
/** How long the last reading of a node that does not respond stays valid. */
const STALE_MS = 60_000;
const MAX_BYTES = 16 * 1024 * 1024;
const PARALLEL = 16;

interface Known {
  readonly previous: NodeReadings | undefined;
  readonly latest: NodeReadings;
  readonly collectedMs: number;
}

export class MetricsCollector {
  readonly #context: CollectorContext;
  readonly #nodes = new Map<string, Known>();
  readonly #failing = new Set<string>();
  /** Nodes that are being read in the background, because they are down or have failed. */
  readonly #retrying = new Set<string>();
  #requestedMs = 0;
  #collectedMs = Number.NEGATIVE_INFINITY;
  #collecting: Promise<void> | undefined;
  #isArmed = false;

  constructor(context: CollectorContext) {
    this.#context = context;
  }

  /**
   * Resolves when the usage of every responding node is less than one period old. Nodes that are down or have failed
   * are read in the background, because a host without power would delay the request until the time-out.
   */
  async fresh(): Promise<void> {
    const { clock } = this.#context;
    this.#requestedMs = clock.monotonicMs();
    const isNew = this.#nodeNames().some((name) => !this.#nodes.has(name) && !this.#isDown(name));
    const isRecent = this.#requestedMs - this.#collectedMs < PERIOD_MS;
    if (!isRecent || isNew) await this.#collect();
    this.#arm();
  }

  node(name: string): ResourceUsage | undefined {
    const known = this.#nodes.get(name);
    return known?.latest.node === undefined ? undefined : usageOf(known.previous?.node, known.latest.node);
  }

  /** Usage of a pod's containers by name. Containers without two readings are missing. */
  pod(nodeName: string, key: string): ReadonlyMap<string, ResourceUsage> {
    const known = this.#nodes.get(nodeName);
    const found = new Map<string, ResourceUsage>();
    const before: ReadonlyMap<string, Reading> | undefined = known?.previous?.pods.get(key);
    for (const [container, latest] of known?.latest.pods.get(key) ?? []) {
      const usage = usageOf(before?.get(container), latest);
      if (usage !== undefined) found.set(container, usage);
    }
    return found;
  }

  #nodeNames(): string[] {
    return [...this.#context.cache.kind('minions')].map(({ name }) => name);
  }

  #collect(): Promise<void> {
    this.#collecting ??= this.#collectAll().finally(() => {
      this.#collecting = undefined;
    });
    return this.#collecting;
  }

  async #collectAll(): Promise<void> {
    const { clock } = this.#context;
    const names = this.#nodeNames();
    const present = new Set(names);
    for (const name of this.#nodes.keys()) if (!present.has(name)) this.#nodes.delete(name);
    for (const name of this.#failing) if (!present.has(name)) this.#failing.delete(name);
    for (const name of names) if (this.#isDown(name)) this.#retry(name);
    const waited = names.filter((name) => !this.#isDown(name));
    const worker = async (): Promise<void> => {
      for (let name = waited.pop(); name !== undefined; name = waited.pop()) await this.#collectNode(name);
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    this.#collectedMs = clock.monotonicMs();
  }

  #isDown(name: string): boolean {
    if (this.#failing.has(name)) return true;
    const node = this.#context.cache.kind('minions').get('', name)?.shared<Node>();
    return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'Unknown') === true;
  }

  #retry(name: string): void {
    if (this.#retrying.has(name) || this.#retrying.size >= PARALLEL) return;
    this.#retrying.add(name);
    void this.#collectNode(name).finally(() => this.#retrying.delete(name));
  }

  async #collectNode(name: string): Promise<void> {
    const { clock, log } = this.#context;
    const known = this.#nodes.get(name);
    try {
      let previous = known?.latest;
      if (previous === undefined) {
        previous = await this.#scrape(name);
        await new Promise<void>((resolve) => clock.setTimer(FIRST_WINDOW_MS, resolve));
      }
      const latest = await this.#scrape(name);
      this.#nodes.set(name, { previous, latest, collectedMs: clock.monotonicMs() });
      this.#failing.delete(name);
    } catch (error) {
      if (this.#context.stopping.aborted) return;
      if (!this.#failing.has(name)) log.warn('cannot read metrics of a node', { node: name, error: messageOf(error) });
      this.#failing.add(name);
      if (known !== undefined && clock.monotonicMs() - known.collectedMs > STALE_MS) this.#nodes.delete(name);
    }
  }

  async #scrape(name: string): Promise<NodeReadings> {
    const { backends, clock, stopping } = this.#context;
    const target = kubeletOf(this.#context, name, '/metrics/resource');
    const abort = new AbortController();
    const timer = clock.setTimer(TIMEOUT_MS, () => abort.abort());
    try {
      const answer = await backends.request(
        {
          network: 'cluster',
          scheme: target.scheme,
          host: target.host,
          port: target.port,
          method: 'GET',
          path: target.path,
          headers: { accept: 'text/plain', 'user-agent': 'kube-apiserver' },
          ...(target.tls === undefined ? {} : { tls: target.tls }),
          allowAddress: target.allowAddress,
          connectTimeoutMs: target.connectTimeoutMs ?? TIMEOUT_MS,
          signal: AbortSignal.any([abort.signal, stopping]),
          pooled: true,
        },
        undefined,
      );
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (size > MAX_BYTES) throw new Error(`the response of the kubelet exceeds ${MAX_BYTES} bytes`);
        chunks.push(chunk);
      }
      if (answer.statusCode !== 200) throw new Error(`the kubelet returned status ${answer.statusCode}`);
      return readExposition(Buffer.concat(chunks).toString('utf8'), clock.nowMs());
    } finally {
      timer.cancel();
      abort.abort();
    }
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    const { clock, stopping } = this.#context;
    clock.setTimer(PERIOD_MS, () => {
      this.#isArmed = false;
      if (stopping.aborted) return;
      if (clock.monotonicMs() - this.#requestedMs > IDLE_MS) {
        this.#nodes.clear();
        this.#failing.clear();
        this.#collectedMs = Number.NEGATIVE_INFINITY;
        return;
      }
      void this.#collect().then(() => this.#arm());
    });
  }
}
