/** Life cycle of containers: creation under a monitor, start, end and removal, with their records. */

import { join } from 'node:path';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { messageOf } from '../../../base/errors.ts';
import { type ContainerStatus, RuntimeError } from '../../port.ts';
import { removeExecCgroups } from '../exec/exec-cgroup.ts';
import { hasProcess, isRunning } from '../processes.ts';
import { ContainerBundles } from './container-bundles.ts';
import { ContainerEnds } from './container-ends.ts';
import { ContainerTable, hasEnded } from './container-table.ts';
import type { RuntimeContext } from './context.ts';
import type { ContainerRecord } from './records.ts';

/**
 * Interval of checking /proc for each container when containers are listed. The pids of a killed monitor and its
 * process may have been reused, which the cheaper check cannot detect.
 */
const THOROUGH_MS = 30_000;

/**
 * Whether the container's process and its monitor exist. A running monitor reports the end of its process itself, and
 * the process keeps its pid until then.
 */
const isMonitored = ({ pid, monitorPid }: ContainerRecord): boolean => hasProcess(pid) && hasProcess(monitorPid);

export class Containers {
  readonly #context: RuntimeContext;
  readonly #turns = new Turns();
  readonly #table: ContainerTable;
  readonly #bundles: ContainerBundles;
  readonly #ends: ContainerEnds;
  #thoroughMs = Number.NEGATIVE_INFINITY;

  constructor(context: RuntimeContext) {
    this.#context = context;
    this.#table = new ContainerTable(context.paths);
    this.#bundles = new ContainerBundles(context, this.#table);
    this.#ends = new ContainerEnds(context, this.#table, this.#turns);
  }

  /** Reads the records, records the end of containers that ended meanwhile, and removes interrupted creations. */
  async load(): Promise<void> {
    for (const id of await this.#table.load()) await this.#bundles.discard(id);
    await Promise.all(this.#table.all().map((record) => this.settle(record.id)));
    // Remove the execs that the previous host process started. Their clients and probes ended with that process.
    const running = this.#table.all().filter((record) => record.bootId === this.#context.bootId && !hasEnded(record));
    await Promise.all(running.map((record) => removeExecCgroups(record.cgroups, this.#context.deps.clock)));
  }

  /** Throws RuntimeError 'not-found'. */
  get(id: string): ContainerRecord {
    return this.#table.get(id);
  }

  has(id: string): boolean {
    return this.#table.find(id) !== undefined;
  }

  bundle(id: string): string {
    return this.#table.bundle(id);
  }

  /**
   * Directory with the files that the container writes to its root. Does not exist for a container on the host's root.
   */
  writableLayer(id: string): string {
    return join(this.#table.bundle(id), 'upper');
  }

  all(): readonly ContainerRecord[] {
    return this.#table.all();
  }

  inSandbox(sandboxId: string): readonly ContainerRecord[] {
    return this.#table.all().filter((record) => record.sandboxId === sandboxId);
  }

  async list(): Promise<readonly ContainerStatus[]> {
    const living = this.#table.all().filter((record) => !hasEnded(record));
    const nowMs = this.#context.deps.clock.monotonicMs();
    const isThorough = nowMs - this.#thoroughMs >= THOROUGH_MS;
    if (isThorough) this.#thoroughMs = nowMs;
    const doubtful = isThorough ? living : living.filter((record) => !isMonitored(record));
    await Promise.all(doubtful.map((record) => this.#settleIfExited(record)));
    return this.#table.all().map(describe);
  }

  /** Creates a container. `joined` resolves when its sandbox is complete; only then may the container be used. */
  create(...request: Parameters<ContainerBundles['create']>): Promise<string> {
    return this.#bundles.create(...request);
  }

  /** Starts preparing the root of a sandbox's first container, before the container is requested. */
  prepareRoot(sandboxId: string, imageId: string): void {
    this.#bundles.prepareRoot(sandboxId, imageId);
  }

  /** Removes a prepared root that no container has used. */
  discardRoot(sandboxId: string): Promise<void> {
    return this.#bundles.discardRoot(sandboxId);
  }

  start(id: string): Promise<void> {
    return this.#turns.inTurn(id, async () => {
      const record = this.#table.get(id);
      if (record.startedAtMs > 0) return;
      try {
        await this.#context.handlers.of(record).runc.start(id, () => isRunning(record.pid, record.pidStart));
      } catch (error) {
        throw new RuntimeError('start-failed', messageOf(error), { cause: error });
      }
      await this.#table.save({ ...record, startedAtMs: this.#context.deps.clock.nowMs() });
      this.#context.changed(record.sandboxId);
    });
  }

  stop(id: string, graceSeconds: number): Promise<void> {
    return this.#ends.stop(id, graceSeconds);
  }

  async remove(id: string): Promise<void> {
    const record = this.#table.find(id);
    if (record === undefined) return;
    await this.stop(id, 0);
    await this.#turns.inTurn(id, async () => {
      await this.#bundles.discard(id);
      this.#context.changed(record.sandboxId);
    });
  }

  /**
   * Records the end of a container whose monitor left an exit code or has exited, and frees what the container held.
   */
  settle(id: string): Promise<void> {
    return this.#ends.settle(id);
  }

  /**
   * Records the end of containers whose monitor has exited. Such containers end without an exit file, so this method
   * must be called periodically.
   */
  async settleUnmonitored(): Promise<void> {
    const unheard = this.#table.all().filter((record) => !hasEnded(record) && !hasProcess(record.monitorPid));
    await Promise.all(unheard.map((record) => this.settle(record.id)));
  }

  ended(id: string): Promise<void> {
    return this.#ends.ended(id);
  }

  async #settleIfExited(record: ContainerRecord): Promise<void> {
    if (!(await isRunning(record.pid, record.pidStart))) await this.settle(record.id);
  }
}

function describe(record: ContainerRecord): ContainerStatus {
  const state = record.finishedAtMs > 0 ? 'exited' : record.startedAtMs > 0 ? 'running' : 'created';
  return {
    id: record.id,
    sandboxId: record.sandboxId,
    name: record.name,
    attempt: record.attempt,
    image: record.image,
    imageId: record.imageId,
    state,
    createdAtMs: record.createdAtMs,
    startedAtMs: record.startedAtMs,
    finishedAtMs: record.finishedAtMs,
    exitCode: record.exitCode,
    reason: record.reason,
    message: record.message,
    logPath: record.logPath,
    pid: state === 'exited' ? 0 : record.pid,
    ...(record.user === undefined ? {} : { user: record.user }),
    ...(record.stopSignal === '' ? {} : { stopSignal: record.stopSignal }),
    labels: record.labels,
    annotations: record.annotations,
  };
}
