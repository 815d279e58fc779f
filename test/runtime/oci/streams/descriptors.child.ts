/** Starts programs while no file descriptor is free, and prints the errors of their callers as JSON. */

import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { silentLog } from '../../../../src/base/log.ts';
import { hostDoctorOf } from '../../../../src/host/doctor/child.ts';
import { outputOf } from '../../../../src/host/support-bundle/programs.ts';
import { hostLogs } from '../../../../src/kubelet/io/host-facts/logs.ts';
import { createLoginManager } from '../../../../src/kubelet/io/systemd/index.ts';
import { output } from '../../../../src/network/pods/io/command.ts';
import { startMonitor as followKernel } from '../../../../src/network/pods/io/monitor.ts';
import { readAttributes } from '../../../../src/runtime/images/layers/attributes.ts';
import { pinNamespaces } from '../../../../src/runtime/oci/spec/user-namespace.ts';
import { startMonitor } from '../../../../src/runtime/oci/streams/conmon.ts';
import { connectInNamespace } from '../../../../src/runtime/oci/streams/port-connect.ts';

const errors: Record<string, string> = {};
const keep = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  await work().catch((error: Error) => {
    errors[name] = error.message;
  });
};
const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // No descriptor is free.
}
await keep('container monitor', async () =>
  startMonitor({
    conmon: '/bin/true',
    runc: { path: '/bin/true', globalArgs: [] } as never,
    driver: 'cgroupfs',
    id: 'c',
    bundle: '/',
    exits: '/',
    logPath: '/dev/null',
    logLimitBytes: undefined,
    tty: false,
    stdin: false,
    leaveStdinOpen: false,
  }).create(),
);
await keep('network tool', () => output('/bin/true', []));
await keep('lock', () => createLoginManager({ inhibit: '/bin/true' }).lock());
await keep('user namespace', () => pinNamespaces(new Map([['user', '/none']]), { hostId: 65_536, length: 65_536 }));
await keep('attributes', () => readAttributes('/', ['etc']));
await keep('port forwarding', () => connectInNamespace('/bin/true', '/none', 1, () => {}));
await keep('checks of the host', () => hostDoctorOf(['/bin/true'], '/').report(new AbortController().signal));
await keep('program of a support bundle', async () => {
  for await (const _ of outputOf(['/bin/true'], new AbortController().signal));
});
const restarted = Promise.withResolvers<unknown>();
const log = { ...silentLog, warn: (_message: string, fields?: unknown) => restarted.resolve(fields) };
const monitor = followKernel({ command: ['/bin/true'], subject: 'address', lines: () => {}, log });
errors['kernel monitor'] = JSON.stringify(await restarted.promise);
monitor.stop();
await keep('journal', async () => {
  const lines = hostLogs({ directory: '/', journalctl: '/bin/true' }).journal(
    { units: [] } as never,
    new AbortController().signal,
  );
  await once(lines as never, 'end');
});
for (const each of taken) closeSync(each);
process.stdout.write(JSON.stringify(errors));
