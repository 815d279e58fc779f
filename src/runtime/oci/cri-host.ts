import { access, mkdir } from 'node:fs/promises';
import type { CriHost } from '../cri/port.ts';
import { cgroupsOf, readCgroupMounts, readStats } from './cgroups.ts';
import { stopSignal } from './containers/stop-signal.ts';
import { connectInNamespace, connectOnHost } from './streams/port-connect.ts';

/** `socat`: program that opens connections in network namespaces. */
export function createCriHost(socat = 'socat'): CriHost {
  return {
    signalNumber: stopSignal,
    kill(pid, signal) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has exited.
      }
    },
    makeDirectory: async (path) => void (await mkdir(path, { recursive: true, mode: 0o755 })),
    isThere: (path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    async processes(pid) {
      const stats = await readStats(await cgroupsOf(pid, await readCgroupMounts()), 0);
      return stats?.pids ?? 0;
    },
    connect: (network, port) =>
      network === undefined ? connectOnHost(port) : connectInNamespace(socat, network, port, () => {}),
  };
}
