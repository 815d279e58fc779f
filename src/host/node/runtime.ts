/**
 * The container runtime of a host: the embedded one (image store, pod network, runc under conmon) or another runtime on
 * the host.
 */

import { join } from 'node:path';
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';
import type { ServiceManager } from '../../kubelet/io/systemd/index.ts';
import { type CriRuntime, createCriRuntime } from '../../runtime/cri/runtime.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { createImageStore, type ImageStore } from '../../runtime/images/index.ts';
import { createCriHost } from '../../runtime/oci/cri-host.ts';
import { createOciRuntime, type OciRuntime } from '../../runtime/oci/runtime.ts';
import { type Runtime, RuntimeError } from '../../runtime/port.ts';
import { resolvedLinks } from '../config/data-links.ts';
import { registryOptions, shareRegistries } from '../config/registries.ts';
import type { Settings } from '../config/settings.ts';
import { createHostNetwork, type HostNetwork } from '../network/host-network.ts';
import { createPolicyGate, type PolicyGate } from '../network/network-policy.ts';
import { packaged } from '../process/assets.ts';
import { systemClock as clock } from '../process/process.ts';
import { createRuntimeLog } from './runtime-log.ts';

export interface HostRuntime {
  readonly runtime: Runtime;
  readonly network: HostNetwork;
  readonly images: ImageStore;
  readonly policies: PolicyGate;
  /** Reads the log level in the pool's files and applies it. */
  readonly followLogLevel: () => Promise<void>;
  /** Stops the runtime. Without `keepPods`, the pod network is deleted too. */
  stop(options: { readonly keepPods: boolean }): Promise<void>;
}

export interface HostRuntimeOptions {
  readonly settings: Settings;
  readonly cgroupDriver: 'systemd' | 'cgroupfs';
  readonly serviceManager: ServiceManager | undefined;
  /** Directory of the packaged programs; undefined means that the host's own programs are used. */
  readonly helpers: string | undefined;
  readonly log: Log;
  /** Called after the configuration files are written and before the pod network has its CIDR. */
  reservedPorts(): readonly ReservedPort[];
}

/**
 * Starts the runtime, which takes over running containers of an earlier host process. Throws CodedErrors 'runtime' and
 * 'bad-config'.
 */
export async function startRuntime(options: HostRuntimeOptions): Promise<HostRuntime> {
  const { settings, cgroupDriver, serviceManager, helpers, log } = options;
  const registry = await registryOptions(settings);
  await shareRegistries(settings, registry);
  const images = createImageStore({ root: settings.paths.images, trees, log, registry });
  const network = await createHostNetwork(settings, () => options.reservedPorts(), log.named('network'));
  const policies = createPolicyGate();
  const runtimeLog = createRuntimeLog(log, settings.root);
  const socat = helpers === undefined ? 'socat' : join(helpers, 'socat');
  const endpoint = settings.containerRuntimeEndpoint;
  const remote =
    endpoint === undefined ? undefined : createCriRuntime({ endpoint, clock, log, host: createCriHost(socat) });
  const runtime: OciRuntime | CriRuntime =
    remote ??
    createOciRuntime({
      stateRoot: settings.paths.containers,
      runRoot: await resolvedLinks(join(settings.paths.run, 'containers')),
      images,
      network: policies.guard(network),
      trees,
      watchPath,
      cgroupDriver,
      monitorScopes: serviceManager,
      clock,
      log: runtimeLog.log,
      hostRootVisible: ownFiles(),
      handlers: settings.runtimeHandlers,
      ...(helpers === undefined
        ? {}
        : {
            programs: { runc: join(helpers, 'runc'), conmon: join(helpers, 'conmon'), socat },
          }),
    });
  try {
    await runtime.start();
  } catch (error) {
    if (error instanceof RuntimeError) throw new CodedError('runtime', error.message, { cause: error });
    throw error;
  }
  return {
    runtime,
    network,
    images,
    policies,
    followLogLevel: runtimeLog.follow,
    stop: async ({ keepPods }) => {
      await runtime.stop();
      if (!keepPods) await network.destroy();
    },
  };
}

/**
 * Paths that control-plane containers need: the executable or, without a package, Node with the sources and their
 * dependencies.
 */
function ownFiles(): readonly string[] {
  if (packaged) return [process.execPath];
  const project = join(process.argv[1] ?? '', '../..');
  return [process.execPath, join(project, 'src'), join(project, 'node_modules'), join(project, 'package.json')];
}
