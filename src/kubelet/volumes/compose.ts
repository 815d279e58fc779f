/** Creates and connects the parts that manage the node's volumes. */
import type { ImageVolumeSource, Node, Pod } from '../../api/generated/core/v1.ts';
import type { NodeName, Uid } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import type { Trees } from '../../runtime/directory-removal/port.ts';
import type { ImageStatus, Runtime } from '../../runtime/port.ts';
import type { RegistrationSockets } from '../plugins/port.ts';
import { type PluginHandler, PluginRegistrations } from '../plugins/registrations.ts';
import type { PodDirectories } from '../pods/directories.ts';
import type { KubeletEvents } from '../pods/events.ts';
import type { FileWatch, HostFacts, Mounter } from '../port.ts';
import type { KubeletFiles } from '../ports/files-port.ts';
import { ClaimVolumes } from './claims.ts';
import { AllocatableUpdates } from './csi/allocatable.ts';
import { Attachments } from './csi/attachments.ts';
import { CsiContext } from './csi/context.ts';
import { CsiDrivers } from './csi/drivers.ts';
import type { CsiConnector } from './csi/port.ts';
import { StagedRecords } from './csi/staged-records.ts';
import { CsiStaging } from './csi/staging.ts';
import { VolumeExpansion } from './expansion.ts';
import { recordedVolumes, VolumePlugins } from './plugins.ts';
import { MountRecords } from './records.ts';
import type { TokenSource } from './tokens.ts';
import type { VolumeTools } from './tools-port.ts';
import { isDurable } from './types/index.ts';
import { VolumeUsages } from './usage.ts';

/**
 * Creates the directory of all volumes with shared mount propagation, in both directions, for containers of CSI
 * drivers.
 */
export async function makeVolumeRoot({ config, files, volumes, log }: VolumeRootDeps): Promise<void> {
  await files.pods.makeDirectory(config.paths.volumes, 0o750);
  await volumes.tools.shareMounts(config.paths.volumes).catch((error: unknown) => {
    log.warn('mounts of CSI drivers in containers do not reach pods', { error: messageOf(error) });
  });
}

/** Removes the shared mount of the volume directory. Called after the last pod has ended. */
export async function releaseVolumeRoot({ config, volumes, log }: VolumeRootDeps): Promise<void> {
  await volumes.tools.unshareMounts(config.paths.volumes).catch((error: unknown) => {
    log.warn('volume directory still mounted', { error: messageOf(error) });
  });
}

interface VolumeRootDeps {
  readonly config: { readonly paths: { readonly volumes: string } };
  readonly files: Pick<KubeletFiles, 'pods'>;
  readonly volumes: { readonly tools: Pick<VolumeTools, 'shareMounts' | 'unshareMounts'> };
  readonly log: Log;
}

/** Dependencies of the volumes. */
export interface VolumeDeps {
  readonly tools: VolumeTools;
  readonly connectCsi: CsiConnector;
  readonly registrations: RegistrationSockets;
}

export interface NodeVolumes {
  readonly plugins: VolumePlugins;
  readonly expansion: VolumeExpansion;
  /** Must run after the Node object exists, because drivers are reported on it. */
  start(): void;
  stop(): Promise<void>;
  /** Unique names of the attachable volumes that the node uses. */
  inUse(): Promise<string[]>;
  /** Handles a Node that was re-created or changed by another client. */
  nodeChanged(): void;
  readonly usages: VolumeUsages;
}

export interface NodeVolumesOptions extends VolumeDeps {
  readonly nodeName: NodeName;
  readonly node: () => Node | undefined;
  readonly directories: PodDirectories;
  readonly files: KubeletFiles;
  readonly fileWatch: FileWatch;
  readonly mounts: Mounter;
  readonly tokens: TokenSource;
  readonly events: KubeletEvents;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly pod: (uid: Uid) => Pod | undefined;
  readonly runtime: Runtime;
  readonly host: HostFacts;
  readonly trees: Trees;
  /** Handlers of plug-ins other than volume drivers. */
  readonly pluginHandlers: ReadonlyMap<string, PluginHandler>;
  readonly pullImage: (pod: Pod, source: ImageVolumeSource) => Promise<ImageStatus>;
}

export function nodeVolumes(options: NodeVolumesOptions): NodeVolumes {
  const { nodeName, node, directories, files, mounts, tools, events, clock, log } = options;
  const records = new MountRecords(directories, files.pods, tools, isDurable);
  const claims = new ClaimVolumes(node);
  const drivers = new CsiDrivers({
    connect: options.connectCsi,
    nodeName,
    log: log.named('csi'),
    onRegistered: (driver) => {
      allocatable.registered(driver);
      void staging.resume(driver);
    },
  });
  const allocatable = new AllocatableUpdates({ drivers, clock, random: options.random, log: log.named('csi') });
  const staged = new StagedRecords({ mounts: records, directories, files: files.pods, tools });
  const attachments = new Attachments({ nodeName, node, records, staged, clock });
  const staging = new CsiStaging({
    drivers,
    staged,
    attachments,
    directories,
    tools,
    clock,
    log: log.named('volumes'),
  });
  const context = new CsiContext(options.tokens);
  const shared = { records, directories, files: files.volumes, foreign: files.foreign, mounts, tools };
  const types = recordedVolumes({
    ...shared,
    attachments,
    drivers,
    staging,
    context,
    log,
    runtime: options.runtime,
    pullImage: options.pullImage,
  });
  const connected = [
    drivers,
    attachments,
    context,
    { connect: (client: ApiClient) => usages.connect(client) },
    allocatable,
  ];
  const plugins = new VolumePlugins({ claims, records, types, connected, foreign: files.foreign, mounts });
  const usages = new VolumeUsages({
    records,
    claims,
    plugins,
    events,
    log: log.named('volumes'),
    nowMs: () => clock.nowMs(),
    host: options.host,
    trees: options.trees,
    pod: options.pod,
  });

  const registrations = new PluginRegistrations({
    directory: directories.pluginRegistry,
    sockets: options.registrations,
    fileWatch: options.fileWatch,
    handlers: new Map<string, PluginHandler>([...options.pluginHandlers, ['CSIPlugin', drivers]]),
    clock,
    log: log.named('plugins'),
  });

  return {
    plugins,
    usages,
    inUse: () => attachments.inUse(),
    nodeChanged() {
      void attachments.isOutdated().then(
        (isOutdated) => {
          if (isOutdated) staging.reportSoon();
        },
        (error: unknown) => log.warn('volumesInUse not compared with the Node', { error: messageOf(error) }),
      );
    },
    start() {
      registrations.start();
      void staging.resume();
    },
    async stop() {
      staging.stop();
      registrations.stop();
      await allocatable.stop();
    },
    expansion: new VolumeExpansion({
      claims,
      records,
      plugins,
      events,
      log: log.named('volumes'),
      nowMs: () => clock.nowMs(),
      pod: options.pod,
    }),
  };
}
