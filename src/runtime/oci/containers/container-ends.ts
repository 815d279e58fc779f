import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { ifMissing, ignore, messageOf } from '../../../base/errors.ts';
import { RuntimeError } from '../../port.ts';
import { wasOomKilled } from '../cgroups.ts';
import { runCommand } from '../command.ts';
import { removeExecCgroups } from '../exec/exec-cgroup.ts';
import { isRunning } from '../processes.ts';
import { type ContainerTable, hasEnded } from './container-table.ts';
import type { RuntimeContext } from './context.ts';
import type { ContainerRecord } from './records.ts';
import { unmountBelow } from './sandbox.ts';
import { stopSignal } from './stop-signal.ts';

/** Time after SIGKILL at which a container is reported as stuck, because a process can hang in the kernel. */
const KILL_TIMEOUT_MS = 10_000;
const EXIT_OF_LOST = 255;
/** Interval of checking a container that is being stopped, in addition to waiting for its exit file. */
const POLL_MS = 1_000;
const DISK_FULL = 'disk full; ended containers recorded only in memory';

type Outcome = Pick<ContainerRecord, 'exitCode' | 'reason' | 'message' | 'finishedAtMs'>;

/**
 * Detects the end of containers by the monitor's exit file, or by other evidence if there is none; and stops
 * containers.
 */
export class ContainerEnds {
  readonly #context: RuntimeContext;
  readonly #table: ContainerTable;
  readonly #turns: Turns;
  readonly #endings = new Map<string, PromiseWithResolvers<void>>();

  /** `turns`: serializes the work per container. */
  constructor(context: RuntimeContext, table: ContainerTable, turns: Turns) {
    this.#context = context;
    this.#table = table;
    this.#turns = turns;
  }

  ended(id: string): Promise<void> {
    const record = this.#table.find(id);
    if (record === undefined || hasEnded(record)) return Promise.resolve();
    let ending = this.#endings.get(id);
    if (ending === undefined) {
      ending = Promise.withResolvers();
      this.#endings.set(id, ending);
    }
    return ending.promise;
  }

  /**
   * Records the end of a container whose monitor left an exit code or has exited, and frees what the container held.
   */
  settle(id: string): Promise<void> {
    return this.#turns.inTurn(id, () => this.#settleLocked(id));
  }

  /**
   * Sends the stop signal and, after `graceSeconds`, SIGKILL. Throws RuntimeError 'internal' if neither ends the
   * container.
   */
  async stop(id: string, graceSeconds: number): Promise<void> {
    const record = this.#table.find(id);
    if (record === undefined) return;
    await this.settle(id);
    if (this.#isOver(id)) return;
    // A container that was never started has no process of its own that could handle a signal.
    if (graceSeconds > 0 && record.startedAtMs > 0) {
      await this.#signal(record, stopSignal(record.stopSignal));
      if (await this.#endsWithin(id, graceSeconds * 1000)) return;
    }
    await this.#signal(record, 'SIGKILL');
    if (await this.#endsWithin(id, KILL_TIMEOUT_MS)) return;
    // Processes of a container without its own pid namespace may have survived its first process. An exit file may also
    // have been missed.
    const { runc } = this.#context.handlers.of(record);
    await runCommand(runc.path, [...runc.globalArgs, 'kill', '--all', id, 'KILL']).catch(
      ignore('settle() finds out whether the container has ended'),
    );
    await this.settle(id);
    if (!this.#isOver(id)) throw new RuntimeError('internal', `container ${id} is still running after SIGKILL`);
  }

  async #settleLocked(id: string): Promise<void> {
    const record = this.#table.find(id);
    if (record === undefined || hasEnded(record)) return;
    const outcome = await this.#outcomeOf(record);
    if (outcome === undefined) return;
    const finished = { ...record, ...outcome };
    if (!(await this.#table.saveEnd(finished))) this.#context.warnOnce(DISK_FULL);
    this.#announceEnd(finished);
    await this.#release(finished).catch((error: unknown) => {
      this.#context.log.warn('ended container not cleaned up; retrying at its removal', {
        container: id,
        error: messageOf(error),
      });
    });
  }

  /** Determines how the container ended; undefined if it is running. */
  async #outcomeOf(record: ContainerRecord): Promise<Outcome | undefined> {
    const { id } = record;
    const exit = await this.#readExit(id);
    if (exit !== undefined) {
      const noted = await stat(join(this.#table.bundle(id), 'oom')).then(
        () => true,
        () => false,
      );
      const oom = exit.code !== 0 && (noted || (await wasOomKilled(record.cgroups)));
      return {
        exitCode: exit.code,
        finishedAtMs: exit.atMs,
        reason: oom ? 'OOMKilled' : exit.code === 0 ? 'Completed' : 'Error',
        message: '',
      };
    }
    if (record.bootId !== this.#context.bootId) {
      return {
        exitCode: EXIT_OF_LOST,
        finishedAtMs: this.#context.bootTimeMs,
        reason: 'Error',
        message: 'the host was restarted',
      };
    }
    if (await isRunning(record.pid, record.pidStart)) return undefined;
    if (await isRunning(record.monitorPid, record.monitorStart)) return undefined;
    // The monitor may have written its file between the two checks.
    if ((await this.#readExit(id)) !== undefined) return this.#outcomeOf(record);
    return {
      exitCode: 137,
      finishedAtMs: this.#context.deps.clock.nowMs(),
      reason: 'Error',
      message: 'the container and its monitor were killed; its exit code is unknown',
    };
  }

  #announceEnd(record: ContainerRecord): void {
    this.#endings.get(record.id)?.resolve();
    this.#endings.delete(record.id);
    this.#context.changed(record.sandboxId);
  }

  /** Exit code and time from the monitor's exit file. */
  async #readExit(id: string): Promise<{ readonly code: number; readonly atMs: number } | undefined> {
    const path = join(this.#context.paths.exits, id);
    const text = (await readFile(path, 'utf8').catch(ifMissing(''))).trim();
    if (!/^-?\d+$/.test(text)) return undefined;
    const written = await stat(path).catch(ifMissing(undefined));
    return written === undefined ? undefined : { code: Number(text), atMs: written.mtimeMs };
  }

  async #release(record: ContainerRecord): Promise<void> {
    if (record.bootId === this.#context.bootId) {
      await removeExecCgroups(record.cgroups, this.#context.deps.clock);
      await this.#context.handlers.of(record).runc.deleteForce(record.id);
      if (record.overlay) await unmountBelow(join(this.#table.bundle(record.id), 'rootfs'));
    }
  }

  async #signal(record: ContainerRecord, name: NodeJS.Signals | number): Promise<void> {
    if (!(await isRunning(record.pid, record.pidStart))) return;
    try {
      process.kill(record.pid, name);
    } catch (error) {
      this.#context.log.v(2, 'signal not sent', { container: record.id, error: messageOf(error) });
    }
  }

  /**
   * Resolves with true if the container ends within `timeoutMs`. The monitor's exit file reports the end. On a full
   * disk there is no such file, so the process is checked as well.
   */
  async #endsWithin(id: string, timeoutMs: number): Promise<boolean> {
    const over = this.ended(id).then(() => true);
    for (let leftMs = timeoutMs; leftMs > 0; leftMs -= POLL_MS) {
      const expired = Promise.withResolvers<boolean>();
      const timer = this.#context.deps.clock.setTimer(Math.min(leftMs, POLL_MS), () => expired.resolve(false));
      const outcome = await Promise.race([over, expired.promise]);
      timer.cancel();
      if (outcome) return true;
      await this.settle(id);
    }
    return this.#isOver(id);
  }

  /** Whether the container has ended. Also true if it was removed meanwhile. */
  #isOver(id: string): boolean {
    const record = this.#table.find(id);
    return record === undefined || hasEnded(record);
  }
}
