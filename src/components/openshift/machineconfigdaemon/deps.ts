import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../../client/types.ts';
import type { ParseOptions } from '../../../core/ignition/index.ts';
import type { HostFiles, HostKernel, HostUnits } from './port.ts';

export interface MachineConfigDaemonOptions {
  readonly nodeName: string;
  readonly informers: InformerFactory;
  /** With the node's own credentials. */
  readonly client: ApiClient;
  readonly recorder: EventRecorder;
  readonly files: HostFiles;
  /** Undefined: the host has no service manager, or it is not this one's; units take effect at the next boot. */
  readonly units: HostUnits | undefined;
  readonly kernel: HostKernel;
  readonly parse: ParseOptions;
  /** With the configuration of now; pods keep running. */
  readonly restartKubelet: () => Promise<void>;
  /** Mirrors, policy and trust of registries are read again. */
  readonly reloadImages: () => Promise<void>;
  /** After a change the Node must be Ready within this time. */
  readonly readyTimeoutMs: number;
  /** After a change that may cut it off, the Node must stay Ready so long. */
  readonly settleMs: number;
  /** Of links of the host that are up. */
  readonly addresses: () => readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}
