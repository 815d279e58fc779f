/**
 * Creates and starts containers of the embedded runtime in an existing sandbox, alternating with runc alone, in a
 * network namespace of its own. Prints the milliseconds of both as JSON. Arguments: bundle, state directory for runc,
 * number of containers.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { toUid } from '../../../src/base/brand.ts';
import { createRuntimeLab } from '../../runtime/oci/lab.ts';

const [bundle = '', runcRoot = '', count = '20'] = process.argv.slice(2);
/** Detached containers keep the runtime's streams, so pipes would stay open. */
const runc = async (...args: readonly string[]): Promise<void> => {
  await once(spawn('runc', ['--root', runcRoot, ...args], { stdio: 'ignore' }), 'exit');
};
// The runtime's timers do not keep a process alive.
const alive = setInterval(() => {}, 60_000);
const lab = await createRuntimeLab();
const own: number[] = [];
const bare: number[] = [];
try {
  const runtime = lab.runtime();
  const imageId = (await runtime.images.status(lab.image))?.id ?? '';
  const sandbox = await runtime.runPodSandbox({
    name: 'bench',
    namespace: 'bench',
    uid: toUid('bench'),
    attempt: 0,
    hostname: 'bench',
    labels: {},
    annotations: {},
    logDirectory: join(lab.logRoot, 'bench'),
    cgroupParent: lab.cgroupParent('bench'),
    hostNetwork: false,
    hostPid: false,
    hostIpc: false,
    shareProcessNamespace: false,
    portMappings: [],
    sysctls: {},
  });
  for (let index = 0; index < Number(count); index++) {
    const begin = performance.now();
    const id = await runtime.createContainer(sandbox, {
      name: `c-${index}`,
      attempt: 0,
      image: lab.image,
      imageId,
      command: ['/bin/sleep', '1000'],
      env: [],
      mounts: [],
      devices: [],
      labels: {},
      annotations: {},
      logPath: `c-${index}.log`,
      stdin: false,
      stdinOnce: false,
      tty: false,
      resources: { cpuShares: 2, cpuQuota: 0, cpuPeriod: 0, memoryLimitBytes: 0, oomScoreAdj: 500, pidsLimit: 0 },
      security: {
        privileged: false,
        supplementalGroups: [],
        readOnlyRootFilesystem: false,
        allowPrivilegeEscalation: true,
        addCapabilities: [],
        dropCapabilities: [],
        seccomp: 'runtime/default',
        procMount: 'default',
      },
    });
    await runtime.startContainer(id);
    own.push(performance.now() - begin);
    await runtime.removeContainer(id);
    const bareBegin = performance.now();
    const name = `bare-${process.pid}-${index}`;
    await runc('run', '--detach', '--bundle', bundle, name);
    bare.push(performance.now() - bareBegin);
    await runc('delete', '--force', name);
  }
} finally {
  await lab.cleanUp();
  clearInterval(alive);
}
console.log(JSON.stringify({ own, bare }));
process.exit(0);
