/** Conformance suite for implementations of the runtime port. */
import assert from 'node:assert/strict';
import { readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it as declare, describe } from 'node:test';
import { toUid } from '../../src/base/brand.ts';
import type {
  ContainerConfig,
  ContainerSecurity,
  ContainerStatus,
  ProcessStreams,
  Runtime,
  SandboxConfig,
} from '../../src/runtime/port.ts';

export interface RuntimeUnderTest {
  /** The running runtime; a new object after `restart`. */
  readonly runtime: () => Runtime;
  /** Kills the runtime and starts another one with the same state. */
  readonly restart: () => Promise<void>;
  /** Reference of an image with busybox that is in the store. */
  readonly image: string;
  readonly logRoot: string;
  /** Cgroup of a pod with this name. */
  readonly cgroupParent: (pod: string) => string;
  readonly cleanUp: () => Promise<void>;
}

const SECURITY: ContainerSecurity = {
  privileged: false,
  supplementalGroups: [],
  readOnlyRootFilesystem: false,
  allowPrivilegeEscalation: true,
  addCapabilities: [],
  dropCapabilities: [],
  seccomp: 'runtime/default',
  procMount: 'default',
};

/**
 * `lacks`: cases by title that this implementation does not support, with the reason. They are skipped. Throws if a
 * title is not that of a case.
 */
export function runtimeConformance(
  name: string,
  factory: () => Promise<RuntimeUnderTest>,
  lacks: Readonly<Record<string, string>> = {},
): void {
  const unknown = new Set(Object.keys(lacks));
  const it = (title: string, work: () => Promise<unknown>): void => {
    const skip = lacks[title] ?? false;
    unknown.delete(title);
    void declare(title, { skip }, async () => void (await work()));
  };
  describe(`runtime conformance: ${name}`, { timeout: 230_000 }, () => {
    let subject: RuntimeUnderTest;
    let imageId = '';
    let counter = 0;
    const cri = (): Runtime => subject.runtime();

    before(async () => {
      subject = await factory();
      imageId = (await cri().images.status(subject.image))?.id ?? '';
      assert.match(imageId, /^sha256:[0-9a-f]{64}$/);
    });
    after(async () => {
      await subject?.cleanUp();
    });

    const sandboxConfig = (overrides: Partial<SandboxConfig> = {}): SandboxConfig => {
      const pod = `pod${++counter}`;
      return {
        name: pod,
        namespace: 'conformance',
        uid: toUid(`uid-${pod}`),
        attempt: 0,
        hostname: pod,
        labels: { app: pod },
        annotations: {},
        logDirectory: join(subject.logRoot, `conformance_${pod}_uid-${pod}`),
        cgroupParent: subject.cgroupParent(pod),
        hostNetwork: false,
        hostPid: false,
        hostIpc: false,
        shareProcessNamespace: false,
        portMappings: [],
        dns: { servers: ['10.0.0.10'], searches: ['conformance.svc.cluster.local'], options: ['ndots:5'] },
        sysctls: {},
        ...overrides,
      };
    };

    const containerConfig = (script: string, overrides: Partial<ContainerConfig> = {}): ContainerConfig => ({
      name: 'main',
      attempt: 0,
      image: subject.image,
      imageId,
      command: ['/bin/sh', '-c', script],
      env: [{ name: 'GREETING', value: 'hello' }],
      mounts: [],
      devices: [],
      labels: { role: 'test' },
      annotations: {},
      logPath: `${overrides.name ?? 'main'}/0.log`,
      stdin: false,
      stdinOnce: false,
      tty: false,
      resources: {
        cpuShares: 102,
        cpuQuota: 0,
        cpuPeriod: 0,
        memoryLimitBytes: 64 * 1024 * 1024,
        oomScoreAdj: 500,
        pidsLimit: 64,
      },
      security: SECURITY,
      ...overrides,
    });

    async function withPod<T>(
      work: (sandboxId: string, config: SandboxConfig) => Promise<T>,
      overrides: Partial<SandboxConfig> = {},
    ): Promise<T> {
      const config = sandboxConfig(overrides);
      const sandboxId = await cri().runPodSandbox(config);
      try {
        return await work(sandboxId, config);
      } finally {
        await cri().removePodSandbox(sandboxId);
      }
    }

    async function run(sandboxId: string, script: string, overrides: Partial<ContainerConfig> = {}): Promise<string> {
      const id = await cri().createContainer(sandboxId, containerConfig(script, overrides));
      await cri().startContainer(id);
      return id;
    }

    async function status(id: string): Promise<ContainerStatus> {
      const found = (await cri().listContainers()).find((container) => container.id === id);
      assert.ok(found, `container ${id} is listed`);
      return found;
    }

    /** Waits with the runtime's own notifications. */
    async function until(id: string, done: (status: ContainerStatus) => boolean): Promise<ContainerStatus> {
      let wake: () => void = () => {};
      const unsubscribe = cri().onChange(() => wake());
      try {
        for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
          const changed = new Promise<void>((resolve) => {
            wake = resolve;
            setTimeout(resolve, 5_000).unref();
          });
          const current = await status(id);
          if (done(current)) return current;
          await changed;
        }
        assert.fail(`container did not reach the state: ${JSON.stringify(await status(id))}`);
      } finally {
        unsubscribe();
      }
    }

    const exited = (id: string): Promise<ContainerStatus> => until(id, ({ state }) => state === 'exited');

    async function logOf(id: string): Promise<string> {
      const { logPath } = await status(id);
      return (await readFile(logPath, 'utf8'))
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => {
          const [time = '', stream = '', tag = '', ...rest] = line.split(' ');
          assert.ok(!Number.isNaN(Date.parse(time)), `log line begins with a time: ${line}`);
          assert.match(stream, /^(stdout|stderr)$/);
          assert.match(tag, /^[PF]$/);
          return `${stream} ${rest.join(' ')}`;
        })
        .join('\n');
    }

    /** Waits until the result of `read`, for example the log, satisfies `done`. */
    async function eventually<T>(read: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
      for (const deadline = Date.now() + 10_000; ; ) {
        const value = await read();
        if (done(value) || Date.now() > deadline) return value;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }

    async function exec(
      id: string,
      ...command: string[]
    ): Promise<{ stdout: string; stderr: string; exitCode: number }> {
      const result = await cri().execSync(id, command, { timeoutMs: 10_000, maxOutputBytes: 1024 * 1024 });
      const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
      return { stdout: text(result.stdout), stderr: text(result.stderr), exitCode: result.exitCode };
    }

    async function collect(source: AsyncIterable<Uint8Array> | undefined): Promise<string> {
      const parts: Uint8Array[] = [];
      if (source !== undefined) for await (const part of source) parts.push(part);
      return Buffer.concat(parts).toString('utf8');
    }

    it('runs a pod from created to exited, and reports its exit code, times and log', () =>
      withPod(async (sandboxId, config) => {
        const listed = (await cri().listPodSandboxes()).find(({ id }) => id === sandboxId);
        assert.equal(listed?.state, 'ready');
        assert.equal(listed?.uid, config.uid);
        assert.deepEqual(listed?.labels, config.labels);
        const id = await cri().createContainer(sandboxId, containerConfig('echo out; echo err >&2; exit 3'));
        assert.equal((await status(id)).state, 'created');
        await cri().startContainer(id);
        const done = await exited(id);
        assert.equal(done.exitCode, 3);
        assert.equal(done.reason, 'Error');
        assert.ok(done.startedAtMs >= done.createdAtMs && done.finishedAtMs >= done.createdAtMs);
        assert.equal(done.logPath, join(config.logDirectory, 'main/0.log'));
        assert.deepEqual((await logOf(id)).split('\n').toSorted(), ['stderr err', 'stdout out']);
        await cri().removeContainer(id);
        assert.ok(!(await cri().listContainers()).some((container) => container.id === id));
        await cri().removeContainer(id);
      }));

    it('a container has hostname, environment, name resolution, address and loopback', () =>
      withPod(async (sandboxId, config) => {
        const id = await run(sandboxId, 'sleep 60');
        const sandbox = (await cri().listPodSandboxes()).find((each) => each.id === sandboxId);
        const address = sandbox?.ips[0] ?? '';
        assert.match(address, /^\d+\.\d+\.\d+\.\d+$/);
        assert.equal((await exec(id, 'hostname')).stdout.trim(), config.hostname);
        assert.equal((await exec(id, 'sh', '-c', 'echo $GREETING $HOSTNAME')).stdout, `hello ${config.hostname}\n`);
        const resolv = (await exec(id, 'cat', '/etc/resolv.conf')).stdout;
        const lines = ['nameserver 10.0.0.10', 'options ndots:5', 'search conformance.svc.cluster.local'];
        assert.deepEqual(resolv.trim().split('\n').sort(), lines);
        const links = (await exec(id, 'ip', 'addr')).stdout;
        assert.ok(links.includes(`inet ${address}/`), links);
        assert.match(links, /lo: <LOOPBACK,UP/);
        assert.equal((await exec(id, 'ps')).stdout.includes('node'), false, "the process table is the container's own");
      }));

    it('containers of a pod share network and IPC, but not processes', () =>
      withPod(async (sandboxId) => {
        const server = await run(
          sandboxId,
          'echo shared > /dev/shm/note; while true; do echo hi | nc -l -p 7000; done',
          { name: 'server' },
        );
        const client = await run(sandboxId, 'sleep 60', { name: 'client' });
        const answer = await eventually(
          () => exec(client, 'sh', '-c', 'nc 127.0.0.1 7000 </dev/null; cat /dev/shm/note'),
          ({ stdout }) => stdout.includes('shared'),
        );
        assert.equal(answer.stdout, 'hi\nshared\n');
        assert.equal((await exec(client, 'sh', '-c', 'ps | grep -c "[n]c -l"')).stdout.trim(), '0');
        await cri().stopContainer(server, 0);
      }));

    it('shares the PID namespace on request and reaps its orphans', () =>
      withPod(
        async (sandboxId) => {
          await run(sandboxId, 'exec sleep 1234', { name: 'one' });
          const two = await run(sandboxId, 'sleep 60', { name: 'two' });
          assert.match((await exec(two, 'ps')).stdout, /sleep 1234/);
          await exec(two, 'sh', '-c', '(sleep 0.05 &) ; true');
          const zombies = await eventually(
            async () => (await exec(two, 'sh', '-c', 'ps -o stat,args | grep -c "^Z"')).stdout.trim(),
            (count) => count === '0',
          );
          assert.equal(zombies, '0');
        },
        { shareProcessNamespace: true },
      ));

    it('applies users, groups, capabilities, read-only roots and no-new-privileges', () =>
      withPod(async (sandboxId) => {
        const script = 'id; grep -E "CapBnd|NoNewPrivs|Seccomp:" /proc/self/status; touch /data/x; sleep 60';
        const security: ContainerSecurity = {
          ...SECURITY,
          runAsUser: 1000,
          supplementalGroups: [3000],
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          dropCapabilities: ['ALL'],
          addCapabilities: ['NET_BIND_SERVICE'],
        };
        const id = await run(sandboxId, script, { security });
        const log = await eventually(
          () => logOf(id),
          (text) => text.includes('touch'),
        );
        assert.match(log, /uid=1000\(app\) gid=1001\(app\) groups=.*2000\(extra\).*3000/);
        assert.match(log, /CapBnd:\s+0000000000000400/);
        assert.match(log, /NoNewPrivs:\s+1/);
        assert.match(log, /Seccomp:\s+2/);
        assert.match(log, /stderr .*Read-only file system/);
      }));

    it("omits the image's groups if only the pod's are requested", () =>
      withPod(async (sandboxId) => {
        const security = { ...SECURITY, runAsUser: 1000, supplementalGroups: [3000], strictSupplementalGroups: true };
        const id = await run(sandboxId, 'sleep 60', { security });
        assert.equal((await exec(id, 'id', '-G')).stdout, '1001 3000\n');
        assert.deepEqual((await status(id)).user?.supplementalGroups, [3000]);
      }));

    it('rejects unknown capabilities', () =>
      withPod(async (sandboxId) => {
        const security = { ...SECURITY, addCapabilities: ['NET_ADMINISTRATOR'] };
        await assert.rejects(run(sandboxId, 'sleep 60', { security }), /unknown capability "NET_ADMINISTRATOR"/);
      }));

    it('denies new namespaces only under the default seccomp filter', () =>
      withPod(async (sandboxId) => {
        const filtered = await run(sandboxId, 'sleep 60', { name: 'filtered' });
        const refused = await exec(filtered, 'unshare', '-U', 'true');
        assert.notEqual(refused.exitCode, 0);
        assert.match(refused.stderr, /not permitted/);
        const open: ContainerSecurity = { ...SECURITY, seccomp: 'unconfined' };
        const unconfined = await run(sandboxId, 'sleep 60', { name: 'unconfined', security: open });
        assert.deepEqual(await exec(unconfined, 'unshare', '-U', 'true'), { stdout: '', stderr: '', exitCode: 0 });
      }));

    it("gives privileged containers the host's devices and capabilities", () =>
      withPod(
        async (sandboxId) => {
          const id = await run(sandboxId, 'sleep 60', { security: { ...SECURITY, privileged: true } });
          assert.equal((await exec(id, 'mount', '-t', 'tmpfs', 'none', '/data')).exitCode, 0);
          assert.match((await exec(id, 'ls', '-l', '/dev/kmsg')).stdout, /^crw.* 1, +11 /);
        },
        { privileged: true },
      ));

    it('mounts host directories, read-only on request', () =>
      withPod(async (sandboxId, config) => {
        const mounts = [
          {
            hostPath: config.logDirectory,
            containerPath: '/data/rw',
            readOnly: false,
            propagation: 'private' as const,
          },
          {
            hostPath: config.logDirectory,
            containerPath: '/data/ro',
            readOnly: true,
            propagation: 'hostToContainer' as const,
          },
        ];
        const id = await run(sandboxId, 'sleep 60', { mounts });
        await exec(id, 'sh', '-c', 'echo written > /data/rw/note');
        assert.equal(await readFile(join(config.logDirectory, 'note'), 'utf8'), 'written\n');
        const refused = await exec(id, 'sh', '-c', 'echo no > /data/ro/note');
        assert.notEqual(refused.exitCode, 0);
        assert.match(refused.stderr, /Read-only/);
      }));

    it('stops a container with its stop signal, including real-time signals', () =>
      withPod(async (sandboxId) => {
        for (const [stopSignal, number] of [
          ['SIGUSR1', 10],
          ['SIGRTMIN+3', 37],
          ['SIGRTMAX-1', 63],
        ] as const) {
          const script = `trap 'exit 7' ${number}; echo up; while :; do sleep 0.1; done`;
          const id = await run(sandboxId, script, { name: stopSignal.toLowerCase().replace('+', '-'), stopSignal });
          await eventually(
            () => logOf(id),
            (text) => text.includes('up'),
          );
          await cri().stopContainer(id, 10);
          assert.equal((await status(id)).exitCode, 7, stopSignal);
          assert.equal((await status(id)).stopSignal, stopSignal);
        }
      }));

    it('sends the stop signal, then kills after the grace period', () =>
      withPod(async (sandboxId) => {
        const polite = await run(
          sandboxId,
          'trap "echo bye; exit 7" TERM; echo ready; while true; do sleep 0.05; done',
          { name: 'polite' },
        );
        const deaf = await run(sandboxId, 'trap "" TERM; echo ready; while true; do sleep 0.05; done', {
          name: 'deaf',
        });
        for (const id of [polite, deaf]) {
          await eventually(
            () => logOf(id),
            (text) => text.includes('ready'),
          );
        }
        await cri().stopContainer(polite, 10);
        const left = await status(polite);
        assert.deepEqual([left.state, left.exitCode], ['exited', 7]);
        assert.match(await logOf(polite), /bye/);
        const start = Date.now();
        await cri().stopContainer(deaf, 1);
        assert.ok(Date.now() - start >= 900, 'the grace period was given');
        assert.equal((await status(deaf)).exitCode, 137);
        await cri().stopContainer(deaf, 1);
      }));

    it('detects a container that was killed externally', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        process.kill((await status(id)).pid, 'SIGKILL');
        const done = await exited(id);
        assert.deepEqual([done.exitCode, done.reason], [137, 'Error']);
      }));

    it('reports OOMKilled when the kernel enforced the memory limit', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'exec dd if=/dev/zero of=/dev/null bs=200M count=4');
        const done = await exited(id);
        assert.equal(done.reason, 'OOMKilled');
        assert.equal(done.exitCode, 137);
      }));

    it('measures and changes the resources of a container', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        const stats = await cri().containerStats(id);
        assert.ok(stats !== undefined && stats.memoryUsageBytes > 0 && stats.cpuUsageCoreNanoSeconds > 0);
        // The runtime's own threads are still counted shortly after the command has replaced it.
        const pids = await eventually(
          async () => (await cri().containerStats(id))?.pids,
          (count) => count === 1,
        );
        assert.equal(pids, 1);
        const { resources } = containerConfig('');
        await cri().updateContainerResources(id, { ...resources, memoryLimitBytes: 128 * 1024 * 1024 });
        const big = await exec(id, 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=90M', 'count=1');
        assert.equal(big.exitCode, 0, big.stderr);
      }));

    it('measures the writable layers of containers', () =>
      withPod(async (sandboxId) => {
        const options = { unit: 'bytes', timeoutMs: 30_000 } as const;
        const quiet = await run(sandboxId, 'sleep 60', { name: 'quiet' });
        const busy = await run(sandboxId, 'dd if=/dev/zero of=/big bs=1M count=3; sleep 60', { name: 'busy' });
        const used = await eventually(
          () => cri().writableLayers([quiet, busy, 'unknown'], options),
          (layers) => (layers.get(busy) ?? 0) >= 3 << 20,
        );
        assert.ok((used.get(busy) ?? 0) < 4 << 20 && (used.get(quiet) ?? 0) < 1 << 20, JSON.stringify([...used]));
        assert.equal(used.has('unknown'), false);
        const inodes = await cri().writableLayers([busy], { ...options, unit: 'inodes' });
        assert.ok((inodes.get(busy) ?? 0) > 1 && (inodes.get(busy) ?? 0) < 100);
      }));

    it('runs a command and returns its exit code and both outputs, or the reason of a failure', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        assert.deepEqual(await exec(id, 'sh', '-c', 'echo o; echo e >&2; exit 5'), {
          stdout: 'o\n',
          stderr: 'e\n',
          exitCode: 5,
        });
        await assert.rejects(cri().execSync(id, ['sleep', '30'], { timeoutMs: 300, maxOutputBytes: 1024 }), {
          code: 'timeout',
        });
        const left = await eventually(
          async () => (await exec(id, 'ps')).stdout,
          (text) => !text.includes('sleep 30'),
        );
        assert.ok(!left.includes('sleep 30'), 'the timed-out command was killed');
        await assert.rejects(cri().execSync(id, ['/no/such/program'], { timeoutMs: 5_000, maxOutputBytes: 1024 }), {
          code: 'start-failed',
        });
        await cri().stopContainer(id, 0);
        await assert.rejects(cri().execSync(id, ['true'], { timeoutMs: 5_000, maxOutputBytes: 1024 }), {
          code: 'not-found',
        });
      }));

    it('streams a command with input until its end, large output and separate errors', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        const command = ['sh', '-c', 'wc -c; echo problem >&2; exit 4'];
        const session = await cri().exec(id, { command, stdin: true, stdout: true, stderr: true, tty: false });
        const outputs = Promise.all([collect(session.stdout), collect(session.stderr)]);
        const block = Buffer.alloc(64 * 1024, 'x');
        for (let index = 0; index < 48; index++) await session.stdin?.write(block);
        session.stdin?.end();
        const [stdout, stderr] = await outputs;
        assert.equal(stdout.trim(), String(48 * 64 * 1024));
        assert.equal(stderr, 'problem\n');
        assert.equal(await session.exited, 4);
      }));

    async function readUntil(iterator: AsyncIterator<Uint8Array>, text: string, wanted: RegExp): Promise<string> {
      let all = text;
      while (!wanted.test(all)) {
        const { value, done } = await iterator.next();
        if (done) break;
        all += Buffer.from(value).toString('utf8');
      }
      assert.match(all, wanted);
      return all;
    }

    it('provides a real, resizable terminal for a command', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        const session: ProcessStreams = await cri().exec(id, {
          command: ['sh'],
          stdin: true,
          stdout: true,
          stderr: true,
          tty: true,
        });
        assert.equal(session.stderr, undefined);
        const output = session.stdout?.[Symbol.asyncIterator]();
        assert.ok(output && session.stdin);
        session.resize(111, 33);
        await session.stdin.write(
          Buffer.from(
            'tty; echo $TERM; while [ "$(stty size)" != "33 111" ]; do sleep 0.02; done; stty size; echo first-"done"\n',
          ),
        );
        const first = await readUntil(output, '', /first-done\r\n/);
        assert.match(first, /\/dev\/pts\/\d+\r\n/);
        assert.match(first, /xterm\r\n/);
        session.resize(99, 44);
        await session.stdin.write(Buffer.from('while [ "$(stty size)" != "44 99" ]; do sleep 0.02; done; stty size\n'));
        await readUntil(output, '', /44 99\r\n/);
        await session.stdin.write(Buffer.from('exit 6\n'));
        assert.equal(await session.exited, 6);
      }));

    it('kills a command when its client disconnects', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'sleep 60');
        const session = await cri().exec(id, {
          command: ['sleep', '4321'],
          stdin: false,
          stdout: true,
          stderr: true,
          tty: false,
        });
        session.close();
        assert.equal(await session.exited, 137);
        assert.ok(!(await exec(id, 'ps')).stdout.includes('4321'));
      }));

    it('attaches to a container with stdinOnce, and returns its output until its end', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'echo before; cat; echo end >&2', { stdin: true, stdinOnce: true });
        await eventually(
          () => logOf(id),
          (text) => text.includes('before'),
        );
        const session = await cri().attach(id, { stdin: true, stdout: true, stderr: true, tty: false });
        const outputs = Promise.all([collect(session.stdout), collect(session.stderr)]);
        await session.stdin?.write(Buffer.from('through\npartial'));
        session.stdin?.end();
        assert.deepEqual(await outputs, ['through\npartial', 'end\n']);
        assert.equal(await session.exited, 0);
        assert.equal((await exited(id)).exitCode, 0);
      }));

    it('attaches to a terminal and resizes the terminal; the container outlives the client', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'exec sh', { stdin: true, tty: true });
        const session = await cri().attach(id, { stdin: true, stdout: true, stderr: false, tty: true });
        const output = session.stdout?.[Symbol.asyncIterator]();
        assert.ok(output && session.stdin);
        session.resize(120, 40);
        await session.stdin.write(
          Buffer.from('while [ "$(stty size)" != "40 120" ]; do sleep 0.02; done; echo resized\n'),
        );
        await readUntil(output, '', /\nresized\r\n/);
        session.close();
        await session.exited;
        assert.equal((await status(id)).state, 'running');
        const again = await cri().attach(id, { stdin: true, stdout: true, stderr: false, tty: true });
        await again.stdin?.write(Buffer.from('exit 9\n'));
        await collect(again.stdout);
        assert.equal((await exited(id)).exitCode, 9);
      }));

    it("forwards to ports on the pod's loopback and reports a closed port", () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'exec nc -ll -p 7070 -e cat');
        const connect = async () => {
          const stream = await cri().portForward(sandboxId, 7070);
          const answer = collect(stream.readable);
          await stream.write(Buffer.from('ping'));
          stream.end();
          return answer;
        };
        const answer = await eventually(
          () => connect().catch(() => ''),
          (text) => text !== '',
        );
        assert.equal(answer, 'ping');
        await assert.rejects(cri().portForward(sandboxId, 7071), { code: 'network' });
        await cri().stopContainer(id, 0);
      }));

    it('a container log continues in a new file after a rotation', () =>
      withPod(async (sandboxId) => {
        const id = await run(sandboxId, 'n=0; while true; do echo line $n; n=$((n+1)); sleep 0.05; done');
        const { logPath } = await status(id);
        await eventually(
          () => logOf(id),
          (text) => text.includes('line 1'),
        );
        await rename(logPath, `${logPath}.old`);
        await cri().reopenContainerLog(id);
        const fresh = await eventually(
          () => readFile(logPath, 'utf8').catch(() => ''),
          (text) => text.split('\n').length > 3,
        );
        assert.doesNotMatch(fresh, /line 0\n/);
        const old = (await readFile(`${logPath}.old`, 'utf8')).trim().split('\n');
        const numbers = [...old, ...fresh.trim().split('\n')].map((line) => Number(line.split(' ').at(-1)));
        assert.deepEqual(numbers, [...numbers.keys()], 'no line was lost or doubled');
      }));

    it('a new host process adopts all containers after the former process was killed', () =>
      withPod(async (sandboxId) => {
        const lives = await run(sandboxId, 'echo alive; sleep 60', { name: 'lives' });
        const ends = await run(sandboxId, 'sleep 0.3; exit 8', { name: 'ends' });
        const before = await status(lives);
        await subject.restart();
        assert.equal((await cri().listPodSandboxes()).find(({ id }) => id === sandboxId)?.state, 'ready');
        assert.deepEqual(await status(lives), before);
        assert.equal((await exec(lives, 'hostname')).exitCode, 0);
        const done = await exited(ends);
        assert.equal(done.exitCode, 8);
        await cri().stopContainer(lives, 0);
        assert.equal((await status(lives)).state, 'exited');
      }));

    it('stops and removes a sandbox with its containers', async () => {
      const config = sandboxConfig();
      const sandboxId = await cri().runPodSandbox(config);
      const id = await run(sandboxId, 'sleep 60');
      const { pid } = await status(id);
      await cri().stopPodSandbox(sandboxId);
      assert.equal((await status(id)).state, 'exited');
      await assert.rejects(stat(`/proc/${pid}`));
      assert.equal((await cri().listPodSandboxes()).find((each) => each.id === sandboxId)?.state, 'notready');
      await assert.rejects(cri().createContainer(sandboxId, containerConfig('true')), { code: 'create-failed' });
      await cri().stopPodSandbox(sandboxId);
      await cri().removePodSandbox(sandboxId);
      await cri().removePodSandbox(sandboxId);
      assert.ok(!(await cri().listPodSandboxes()).some((each) => each.id === sandboxId));
      assert.ok(!(await cri().listContainers()).some((each) => each.id === id));
    });

    it('explains why a container cannot be created and removes the partial container', () =>
      withPod(async (sandboxId) => {
        const bad = containerConfig('true', { command: ['/no/such/program'] });
        await assert.rejects(
          async () => {
            const id = await cri().createContainer(sandboxId, bad);
            await cri().startContainer(id);
          },
          (error: Error & { code?: string }) =>
            /no such file/i.test(error.message) && /^(create|start)-failed$/.test(error.code ?? ''),
        );
        const missing = containerConfig('true', { imageId: `sha256:${'0'.repeat(64)}` });
        await assert.rejects(cri().createContainer(sandboxId, missing), { code: 'image-not-found' });
        const unknownUser = containerConfig('true', {
          mounts: [{ hostPath: '/no/such/path', containerPath: '/data', readOnly: true, propagation: 'private' }],
        });
        await assert.rejects(cri().createContainer(sandboxId, unknownUser), { code: 'create-failed' });
      }));
    assert.deepEqual([...unknown], [], 'titles that are not those of cases');
  });
}
