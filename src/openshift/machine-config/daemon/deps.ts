import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../../client/types.ts';
import type { ParseOptions } from '../core/ignition/index.ts';
import type { HostFiles, HostKernel, HostUnits } from './port.ts';

export interface MachineConfigDaemonOptions {
  readonly nodeName: string;
  readonly informers: InformerFactory;
  /** Client with the node's own credentials. */
  readonly client: ApiClient;
  readonly recorder: EventRecorder;
  readonly files: HostFiles;
  /** Undefined when the host has no usable service manager. Units then take effect at the next boot. */
  readonly units: HostUnits | undefined;
  readonly kernel: HostKernel;
  readonly parse: ParseOptions;
  /** Restarts the kubelet with the current configuration. Pods keep running. */
  readonly restartKubelet: () => Promise<void>;
  /** Reloads mirrors, policy and trust of registries. */
  readonly reloadImages: () => Promise<void>;
  /** Time within which the Node must be Ready after a change. */
  readonly readyTimeoutMs: number;
  /** Time for which the Node must stay Ready after a change that may disconnect it. */
  readonly settleMs: number;
  /** Addresses of the host's links that are up. */
  readonly addresses: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}
