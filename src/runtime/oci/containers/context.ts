/** Dependencies and state that the parts of the runtime share. */

import type { WatchPath } from '../../../base/files/path-watch-port.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { Trees } from '../../directory-removal/port.ts';
import type { RuntimeFeatures } from '../../port.ts';
import type { CgroupMounts } from '../cgroups.ts';
import type { ImageStorePort, MonitorScopes, PodAttachments } from '../port.ts';
import type { OwnLimits } from '../processes.ts';
import type { Runc } from '../runc.ts';
import type { CgroupDriver } from '../spec/spec.ts';
import type { Handlers } from './handlers.ts';
import type { RuntimePaths } from './records.ts';
import type { StartLimit } from './start-limit.ts';

export interface OciRuntimeDeps {
  /** Directory of records, bundles and writable layers, on a file system that supports overlay upper directories. */
  readonly stateRoot: string;
  /** Directory of pinned namespaces and runc's state; may be cleared at reboot. */
  readonly runRoot: string;
  readonly images: ImageStorePort;
  readonly network: PodAttachments;
  readonly trees: Trees;
  readonly watchPath: WatchPath;
  readonly cgroupDriver: CgroupDriver;
  /** Only with the systemd driver. Without it, monitors stay in the cgroup of the host process. */
  readonly monitorScopes?: MonitorScopes | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Programs to use instead of those found on the default path. */
  readonly programs?: Partial<RuntimePrograms>;
  /** Programs of further runtime class handlers, by name; `runc` and an installed `crun` need no entry. */
  readonly handlers?: Readonly<Record<string, string>>;
  /** Host files and directories that host-root containers see at their own paths, read-only: the running executable. */
  readonly hostRootVisible?: readonly string[];
}

export interface RuntimePrograms {
  readonly runc: string;
  readonly conmon: string;
  readonly socat: string;
}

export interface RuntimeContext {
  readonly deps: OciRuntimeDeps;
  readonly log: Log;
  readonly paths: RuntimePaths;
  readonly programs: RuntimePrograms;
  /** The default runtime. */
  readonly runc: Runc;
  readonly handlers: Handlers;
  readonly bootId: string;
  readonly bootTimeMs: number;
  readonly cgroupMounts: CgroupMounts;
  readonly own: OwnLimits;
  /** Limits concurrent creations of sandboxes and containers. */
  readonly starts: StartLimit;
  readonly features: RuntimeFeatures;
  /** Logs each text once per process. */
  warnOnce(text: string): void;
  /** Notifies the listeners of `onChange`. */
  changed(sandboxId: string): void;
}
