/** Ends pods whose emptyDir volumes on disk have outgrown their `sizeLimit`. Source: pkg/kubelet/eviction localStorageEviction. */
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Volume } from 'kubernetes-types/core/v1';
import { messageOf } from '../../../base/errors.ts';
import { parseBytes } from '../../../base/quantity.ts';
import type { PodManager } from '../pods/pod-manager.ts';
import type { PodServices } from '../pods/services.ts';

const BLOCK_BYTES = 512;

export async function enforceSizeLimits(services: PodServices, pods: PodManager): Promise<void> {
  for (const worker of pods.workers()) {
    if (worker.finished || worker.terminating) continue;
    for (const volume of worker.pod.spec?.volumes ?? []) {
      const limit = diskLimit(volume);
      if (limit === undefined) continue;
      const path = services.directories.volume(worker.uid, 'empty-dir', volume.name);
      try {
        if ((await diskUsage(path, limit)) <= limit) continue;
      } catch (error) {
        services.log.v(2, 'volume not measured', { volume: path, error: messageOf(error) });
        continue;
      }
      const message = `Usage of EmptyDir volume "${volume.name}" exceeds the limit "${volume.emptyDir?.sizeLimit}". `;
      services.events.pod(worker.pod, 'Warning', 'Evicted', message);
      services.log.warn('pod evicted', { pod: worker.pod.metadata?.name, reason: message.trim() });
      worker.terminate(0, { reason: 'Evicted', message });
      break;
    }
  }
}

/** Bytes; a volume in memory is held to its limit by the kernel. */
function diskLimit(volume: Volume): number | undefined {
  const { emptyDir } = volume;
  if (emptyDir?.sizeLimit === undefined || emptyDir.medium === 'Memory') return undefined;
  const limit = parseBytes(emptyDir.sizeLimit);
  return limit > 0 ? limit : undefined;
}

/**
 * Bytes on disk at and below `path`, as du(1) counts: without following links, files with several names once. Stops counting
 * when it is more than `enough`.
 */
export async function diskUsage(path: string, enough: number): Promise<number> {
  const seen = new Set<number>();
  let bytes = 0;
  const visit = async (directory: string): Promise<void> => {
    for await (const entry of await opendir(directory)) {
      if (bytes > enough) return;
      const child = join(directory, entry.name);
      // Files come and go while they are counted.
      const found = await lstat(child).catch(() => undefined);
      if (found === undefined) continue;
      if (found.nlink > 1 && !found.isDirectory()) {
        if (seen.has(found.ino)) continue;
        seen.add(found.ino);
      }
      bytes += found.blocks * BLOCK_BYTES;
      if (found.isDirectory()) await visit(child).catch(() => {});
    }
  };
  await visit(path);
  return bytes;
}
