import { rootComponents } from '../../core/cgroup/names.ts';
import { qosTree } from '../../core/cgroup/tree.ts';
import type { KubeletDeps } from './deps.ts';

export interface Kubelet {
  /**
   * Makes the cgroup levels, adopts what the runtime already runs, begins to read the pod sources and serves. Resolves once static pods are being
   * started; does not wait for an API server.
   */
  start(): Promise<void>;
  /** Ends its own work and leaves the pods running, unless `stopPods`: then they are terminated gracefully first. */
  stop(options?: { readonly stopPods?: boolean }): Promise<void>;
  /** Port of the HTTPS server once it listens. */
  readonly port: number;
  /** Resolves when the Node object was first reported Ready to the API server. */
  readonly nodeReady: Promise<void>;
}

export function createKubelet(deps: KubeletDeps): Kubelet {
  const root = rootComponents(deps.config.cgroupRoot);
  return {
    port: deps.config.listen.port,
    nodeReady: new Promise(() => {}),
    async start() {
      await deps.cgroups.start();
      const info = await deps.host.info();
      await deps.cgroups.apply(
        qosTree([], {
          root,
          allocatable: { cpuMilli: info.cpus * 1000, memoryBytes: info.memoryBytes },
          podPidsLimit: deps.config.podPidsLimit,
          cpuCfsQuota: deps.config.cpuCfsQuota,
        }),
      );
    },
    async stop() {},
  };
}
