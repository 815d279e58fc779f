import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
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
  /** Service manager of the host. Undefined if there is none; changed units then take effect at the next boot. */
  readonly units: HostUnits | undefined;
  readonly kernel: HostKernel;
  readonly parse: ParseOptions;
  /** Restarts the kubelet with the current configuration. Pods keep running. */
  readonly restartKubelet: () => Promise<void>;
  /** Applies changed settings of registries: mirrors, signature policy and trusted certificates. */
  readonly reloadImages: () => Promise<void>;
  /** Time after a change within which the Node must become Ready. */
  readonly readyTimeoutMs: number;
  /** Time for which the Node must stay Ready after a change that may disconnect the host. */
  readonly settleMs: number;
  /** Returns the addresses of the host's network links that are up. */
  readonly addresses: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}
