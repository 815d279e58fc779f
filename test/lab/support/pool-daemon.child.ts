/**
 * Runs the machine config daemon without other components: `pool-daemon.cjs ACCESS.json`. It is bundled for an emulated
 * machine, in which a whole node would be too slow. Files, units, boot loader and reboots are real.
 */

import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { gunzipSync } from 'node:zlib';
import { createLog } from '../../../src/base/log.ts';
import { createApiClient, createEventRecorder, createInformerFactory } from '../../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import { watchPath } from '../../../src/kubelet/io/host-facts/index.ts';
import { createMachineConfigDaemon } from '../../../src/openshift/machine-config/daemon/index.ts';
import { createDisk } from '../../../src/openshift/machine-config/io/disk.ts';
import { createHostFiles } from '../../../src/openshift/machine-config/io/host-files.ts';
import { createHostUnits } from '../../../src/openshift/machine-config/io/host-units.ts';
import { createHostKernel } from '../../../src/openshift/machine-config/io/kernel.ts';
import { createDirectoryWatch } from '../../../src/openshift/machine-config/io/watch.ts';

/** Content of the file ACCESS.json, which the test writes. */
export interface DaemonAccess {
  readonly server: string;
  readonly tlsServerName: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly nodeName: string;
}

const READY_TIMEOUT_MS = 300_000;
const SETTLE_MS = 5_000;

const { nodeName, ...access }: DaemonAccess = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const log = createLog({
  component: 'pool-daemon',
  level: 2,
  sink: { write: (line) => console.error(line) },
  nowMs: () => clock.nowMs(),
});
const client = createApiClient({ ...access, userAgent: 'pool-daemon', log, clock });
const informers = createInformerFactory({ client, log, clock, random });
const disk = createDisk('/');
const daemon = createMachineConfigDaemon({
  nodeName,
  informers,
  client,
  clock,
  log,
  recorder: createEventRecorder({ client, component: 'machineconfigdaemon', clock, random, log }),
  files: createHostFiles(disk, createDirectoryWatch('/', watchPath)),
  kernel: createHostKernel(disk, { programs: true }),
  parse: { inflate: (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength }) },
  units: createHostUnits(),
  restartKubelet: async () => {},
  reloadImages: async () => {},
  readyTimeoutMs: READY_TIMEOUT_MS,
  settleMs: SETTLE_MS,
  addresses: () => Object.values(networkInterfaces()).flatMap((link) => (link ?? []).map(({ address }) => address)),
});
// The daemon's own timers do not keep the process alive, so this timer does.
setInterval(() => {}, 1 << 30);
void daemon.start();
