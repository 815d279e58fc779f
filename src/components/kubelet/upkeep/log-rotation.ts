import { messageOf } from '../../../base/errors.ts';
import type { LogFiles } from '../files-port.ts';
import type { PodServices } from '../pods/services.ts';
import { rotatedLogs } from '../server/log-chain.ts';

/**
 * Renames logs that grew too large and keeps the last few of each container, which `kubectl logs` reads too.
 * Source: pkg/kubelet/logs/container_log_manager.go.
 */
export async function rotateLogs(services: PodServices): Promise<void> {
  const { logs } = services.files;
  const { containerLogMaxBytes, containerLogMaxFiles } = services.settings;
  for (const uid of services.view.uids()) {
    for (const container of services.view.get(uid).containers) {
      if (container.state !== 'running' || container.logPath === '') continue;
      try {
        const size = await logs.size(container.logPath);
        if (size < containerLogMaxBytes) continue;
        await removeOldest(logs, container.logPath, containerLogMaxFiles - 2);
        // To the millisecond: of the same name, the later one would replace the earlier.
        const stamp = new Date(services.clock.nowMs()).toISOString().replaceAll(/\D/g, '');
        await logs.rename(container.logPath, `${container.logPath}.${stamp}`);
        await services.runtime.reopenContainerLog(container.id);
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') continue;
        services.log.warn('log not rotated', { log: container.logPath, error: messageOf(error) });
      }
    }
  }
}

async function removeOldest(logs: LogFiles, path: string, keep: number): Promise<void> {
  const rotated = await rotatedLogs(logs, path);
  for (const old of rotated.slice(0, -Math.max(0, keep) || undefined)) await logs.remove(old);
}
