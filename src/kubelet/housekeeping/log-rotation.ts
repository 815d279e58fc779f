import { dirname } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { PodServices } from '../pods/services.ts';
import type { LogFiles } from '../ports/files-port.ts';
import { rotatedLogs } from '../server/log-chain.ts';

type LogRotationServices = Pick<PodServices, 'clock' | 'files' | 'log' | 'runtime' | 'settings' | 'view'>;

/**
 * Time that a container's monitor may need to reopen its log. A second request within this time would truncate the new
 * file.
 */
const REOPEN_MS = 30_000;

/**
 * Renames logs that exceed the size limit and keeps the last few of each container, which `kubectl logs` also reads.
 * Source: pkg/kubelet/logs/container_log_manager.go.
 */
export class LogRotation {
  readonly #services: LogRotationServices;
  /** Monotonic times of reopen requests, by container. */
  readonly #reopenedMs = new Map<string, number>();

  constructor(services: LogRotationServices) {
    this.#services = services;
  }

  async rotate(): Promise<void> {
    const { view, log } = this.#services;
    const running = new Set<string>();
    for (const uid of view.uids()) {
      for (const container of view.get(uid).containers) {
        if (container.state !== 'running' || container.logPath === '') continue;
        running.add(container.id);
        try {
          await this.#rotateOne(container);
        } catch (error) {
          log.warn('log not rotated', { log: container.logPath, error: messageOf(error) });
        }
      }
    }
    for (const id of this.#reopenedMs.keys()) if (!running.has(id)) this.#reopenedMs.delete(id);
  }

  async #rotateOne(container: ContainerStatus): Promise<void> {
    const { files, settings, clock } = this.#services;
    const { logs } = files;
    const { logPath } = container;
    const size = await logs.size(logPath).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (size === undefined) return this.#restore(container);
    if (size < settings.containerLogMaxBytes) return;
    await removeOldest(logs, logPath, settings.containerLogMaxFiles - 2);
    // Millisecond resolution, because a second rotation with the same name would overwrite the first.
    const stamp = new Date(clock.nowMs()).toISOString().replaceAll(/\D/g, '');
    await logs.rename(logPath, `${logPath}.${stamp}`);
    await this.#reopen(container);
  }

  /**
   * Restores the log file of a container after an interrupted rotation. Until then the container writes to the renamed
   * file, which has no size limit.
   */
  async #restore(container: ContainerStatus): Promise<void> {
    const { clock, files, log } = this.#services;
    const sinceMs = this.#reopenedMs.get(container.id);
    if (sinceMs !== undefined && clock.monotonicMs() - sinceMs < REOPEN_MS) return;
    // The container's monitor would exit if the directory were missing.
    await files.pods.makeDirectory(dirname(container.logPath), 0o755);
    await this.#reopen(container);
    log.info('log of a running container was missing; reopened', { log: container.logPath });
  }

  async #reopen({ id }: ContainerStatus): Promise<void> {
    this.#reopenedMs.set(id, this.#services.clock.monotonicMs());
    await this.#services.runtime.reopenContainerLog(id);
  }
}

async function removeOldest(logs: LogFiles, path: string, keep: number): Promise<void> {
  const rotated = await rotatedLogs(logs, path);
  for (const old of rotated.slice(0, -Math.max(0, keep) || undefined)) await logs.remove(old);
}
