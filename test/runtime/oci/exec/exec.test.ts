/** Remaining processes and files after an exec: none on the host, and only intended ones in the container. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { toUid } from '../../../../src/base/brand.ts';
import type { ContainerConfig, ExecSyncOptions } from '../../../../src/runtime/port.ts';
import { BUSYBOX, createRuntimeLab, type RuntimeLab } from '../lab.ts';
import { inOwnNetworkNamespace } from '../netns.ts';

const PIDS = '/sys/fs/cgroup/pids';
const MEMORY = '/sys/fs/cgroup/memory';

inOwnNetworkNamespace(import.meta.url, () => {
  describe('execs of the embedded runtime', { timeout: 120_000 }, () => {
    let lab: RuntimeLab;
    let id = '';
    let sandboxId = '';
    /** Argument by which the sleep processes of one test are found. */
    let mark = 700_000;

    before(async () => {
      lab = await createRuntimeLab();
      const imageId = (await lab.runtime().images.status(BUSYBOX))?.id ?? '';
      sandboxId = await lab.runtime().runPodSandbox({
        name: 'execs',
        namespace: 'default',
        uid: toUid('uid-execs'),
        attempt: 0,
        hostname: 'execs',
        labels: {},
        annotations: {},
        logDirectory: join(lab.logRoot, 'execs'),
        cgroupParent: lab.cgroupParent('execs'),
        hostNetwork: false,
        hostPid: false,
        hostIpc: false,
        shareProcessNamespace: false,
        portMappings: [],
        sysctls: {},
      });
      const config: ContainerConfig = {
        name: 'main',
        attempt: 0,
        image: BUSYBOX,
        imageId,
        command: ['/bin/sh', '-c', 'sleep 100000 & wait'],
        env: [
          { name: 'GREETING', value: 'hello' },
          { name: 'ODD', value: '"q"\\' },
        ],
        mounts: [],
        devices: [],
        labels: {},
        annotations: {},
        logPath: 'main/0.log',
        stdin: true,
        stdinOnce: false,
        tty: false,
        resources: {
          cpuShares: 102,
          cpuQuota: 0,
          cpuPeriod: 0,
          memoryLimitBytes: 256 * 1024 * 1024,
          oomScoreAdj: 500,
          pidsLimit: 200,
        },
        security: {
          privileged: false,
          runAsUser: 1000,
          supplementalGroups: [],
          readOnlyRootFilesystem: false,
          allowPrivilegeEscalation: true,
          addCapabilities: [],
          dropCapabilities: [],
          seccomp: 'runtime/default',
          procMount: 'default',
        },
      };
      id = await lab.runtime().createContainer(sandboxId, config);
      await lab.runtime().startContainer(id);
    });
    after(async () => {
      await lab?.cleanUp();
    });
    beforeEach(() => {
      mark += 1;
    });

    const options = (overrides: Partial<ExecSyncOptions> = {}): ExecSyncOptions => ({
      timeoutMs: 5_000,
      maxOutputBytes: 16 * 1024,
      ...overrides,
    });
    const sh = (script: string, overrides: Partial<ExecSyncOptions> = {}) =>
      lab.runtime().execSync(id, ['/bin/sh', '-c', script], options(overrides));
    const container = (): string => `${lab.cgroupParent('execs')}/${id}`;

    async function commandLines(): Promise<{ readonly pid: string; readonly command: string }[]> {
      const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
      return Promise.all(
        pids.map(async (pid) => ({
          pid,
          command: (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ').trim(),
        })),
      );
    }

    const sleepers = async (): Promise<number> =>
      (await commandLines()).filter(({ command }) => command === `sleep ${mark}`).length;
    /** Runtimes and monitors of execs of this container. */
    const servants = async () =>
      (await commandLines()).filter(({ command }) => command.includes(id) && /(?: | --)exec /.test(command));

    async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
      for (const deadline = Date.now() + 5_000; !(await holds()); ) {
        assert.ok(Date.now() < deadline, what);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }

    async function nothingLeft(): Promise<void> {
      await eventually('no program of the host is left', async () => (await servants()).length === 0);
      await eventually('no cgroup is left', async () => {
        const names = await readdir(join(PIDS, container()));
        return !names.some((name) => name.startsWith('exec-'));
      });
      await eventually('no scratch directory is left', async () => {
        return (await readdir(join(lab.directory, 'state/execs')).catch(() => [])).length === 0;
      });
    }

    const LEAVING = (): string =>
      `trap '' TERM HUP INT; sleep ${mark} & (sleep ${mark} &); (setsid sleep ${mark} &); sleep ${mark} >/dev/null 2>&1 &`;

    it('the timeout of an exec kills every process that the command started, in any session', async () => {
      const begun = performance.now();
      await assert.rejects(sh(`${LEAVING()} sleep ${mark}`, { timeoutMs: 500 }), { code: 'timeout' });
      assert.equal(await sleepers(), 0, 'killed before the error is returned');
      assert.ok(performance.now() - begun < 4_000);
      await nothingLeft();
    });

    it('the timeout of an exec ends processes that fork faster than they are killed', async () => {
      // Each process of a chain exits as soon as it has started the next.
      const chains = `f() { (f &); }; f; f; f; sleep ${mark}`;
      await assert.rejects(sh(chains, { timeoutMs: 400 }), { code: 'timeout' });
      await nothingLeft();
      assert.equal(await sleepers(), 0);
    });

    it('a timeout during the start of an exec kills the runtime process', async () => {
      await assert.rejects(sh(`sleep ${mark}`, { timeoutMs: 1 }), { code: 'timeout' });
      await nothingLeft();
      assert.equal(await sleepers(), 0);
    });

    it('an exec ends when its command exits although children hold its pipes, and the children are killed', async () => {
      const begun = performance.now();
      const result = await sh(`echo out; echo err >&2; ${LEAVING()} exit 3`);
      assert.ok(performance.now() - begun < 3_000, 'did not wait for the children');
      assert.equal(result.exitCode, 3);
      assert.equal(Buffer.from(result.stdout).toString(), 'out\n');
      assert.equal(Buffer.from(result.stderr).toString(), 'err\n');
      await nothingLeft();
      assert.equal(await sleepers(), 0);
    });

    it('with leavesProcesses, children of an exec continue in the container after the command has exited', async () => {
      const result = await sh(`setsid sleep ${mark} & exit 0`, { leavesProcesses: true });
      assert.equal(result.exitCode, 0);
      await nothingLeft();
      const left = (await commandLines()).filter(({ command }) => command === `sleep ${mark}`);
      assert.equal(left.length, 1);
      const cgroup = await readFile(`/proc/${left[0]?.pid}/cgroup`, 'utf8');
      assert.match(cgroup, new RegExp(`pids:${container()}$`, 'm'));
      process.kill(Number(left[0]?.pid), 'SIGKILL');
    });

    it('an exec discards output beyond the limit with little CPU time', async () => {
      const before = process.cpuUsage();
      const begun = performance.now();
      await assert.rejects(sh('yes', { timeoutMs: 2_000 }), { code: 'timeout' });
      const spent = process.cpuUsage(before);
      const share = (spent.user + spent.system) / 1000 / (performance.now() - begun);
      assert.ok(share < 0.3, `${share} of a processor`);
      const result = await sh('seq 20000; echo end >&2', { maxOutputBytes: 1000 });
      assert.equal(result.exitCode, 0, 'the command is not held up');
      assert.equal(result.stdout.length, 1000);
      assert.equal(Buffer.from(result.stderr).toString(), 'end\n');
    });

    it('a user other than root can open /dev/stdout in an exec', async () => {
      const result = await sh('id -u; echo again > /dev/stdout; echo problem > /proc/self/fd/2');
      assert.equal(Buffer.from(result.stdout).toString(), '1000\nagain\n');
      assert.equal(Buffer.from(result.stderr).toString(), 'problem\n');
    });

    it('starts at most two execs of a pod at once, and the timeout of an exec does not include the wait', async () => {
      let most = 0;
      let ended = false;
      const watching = (async () => {
        let earlier: ReadonlySet<string> = new Set();
        while (!ended) {
          const starting = (await commandLines()).filter(
            ({ command }) => command.includes(id) && command.includes(' exec ') && !command.includes(' --exec '),
          );
          const pids = new Set(starting.map(({ pid }) => pid));
          // A scan takes time. Processes of two successive scans ran at the same time between them.
          most = Math.max(most, pids.intersection(earlier).size);
          earlier = pids;
        }
      })();
      const began = performance.now();
      await sh('echo ran');
      // Twenty execs, two at a time, take longer than this time-out on any host.
      const timeoutMs = Math.max(1_500, 5 * (performance.now() - began));
      try {
        const results = await Promise.all(Array.from({ length: 20 }, () => sh('echo ran', { timeoutMs })));
        assert.ok(results.every(({ exitCode }) => exitCode === 0));
      } finally {
        ended = true;
        await watching;
      }
      assert.ok(most >= 1 && most <= 2, `${most} runtimes at a time`);
    });

    it('an exec has the environment and user of its container, and sets TERM with a terminal', async () => {
      const result = await sh('echo $GREETING; echo "$ODD"; id -u; echo "TERM=$TERM"');
      assert.equal(Buffer.from(result.stdout).toString(), 'hello\n"q"\\\n1000\nTERM=\n');
      const session = await lab.runtime().exec(id, {
        command: ['/bin/sh', '-c', 'echo $GREETING $TERM'],
        stdin: false,
        stdout: true,
        stderr: false,
        tty: true,
      });
      let text = '';
      for await (const part of session.stdout ?? []) text += Buffer.from(part).toString();
      assert.equal(text, 'hello xterm\r\n');
    });

    it('charges exec monitors, attached clients and port forwards to the cgroup of the pod', async () => {
      const session = await lab.runtime().exec(id, {
        command: ['sleep', String(mark)],
        stdin: false,
        stdout: true,
        stderr: false,
        tty: false,
      });
      const monitors = await servants();
      assert.equal(monitors.length, 1, 'the runtime does not stay');
      const charged = await readFile(join(MEMORY, container(), 'cgroup.procs'), 'utf8');
      assert.ok(charged.split('\n').includes(monitors[0]?.pid ?? ''));
      session.close();
      assert.equal(await session.exited, 137);

      const attached = await lab.runtime().attach(id, { stdin: true, stdout: true, stderr: false, tty: false });
      const listener = await lab.runtime().exec(id, {
        command: ['nc', '-ll', '-p', '7070', '-e', 'cat'],
        stdin: false,
        stdout: false,
        stderr: false,
        tty: false,
      });
      const forwarded = await connected(() => lab.runtime().portForward(sandboxId, 7070));
      const pod = await readFile(join(MEMORY, lab.cgroupParent('execs'), 'cgroup.procs'), 'utf8');
      assert.equal(pod.trim().split('\n').length, 2);
      forwarded.destroy();
      attached.close();
      listener.close();
      await nothingLeft();
    });

    async function connected<T>(connect: () => Promise<T>): Promise<T> {
      for (const deadline = Date.now() + 5_000; ; ) {
        try {
          return await connect();
        } catch (error) {
          if (Date.now() > deadline) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    }

    for (const tty of [false, true]) {
      it(`kills every process of an exec when its client closes ${tty ? 'the terminal' : 'the pipes'}`, async () => {
        const command = ['/bin/sh', '-c', `${LEAVING()} sleep ${mark}`];
        const session = await lab.runtime().exec(id, { command, stdin: true, stdout: true, stderr: true, tty });
        await eventually('the pods run', async () => (await sleepers()) === 5);
        session.close();
        assert.equal(await session.exited, 137);
        await nothingLeft();
        assert.equal(await sleepers(), 0);
      });
    }

    it('kills execs that a former host process has left', async () => {
      await lab.runtime().exec(id, {
        command: ['/bin/sh', '-c', `setsid sleep ${mark} & sleep ${mark}`],
        stdin: false,
        stdout: true,
        stderr: true,
        tty: false,
      });
      await eventually('the pods run', async () => (await sleepers()) === 2);
      await lab.restart();
      await nothingLeft();
      assert.equal(await sleepers(), 0);
    });

    it('removes a container with running execs', async () => {
      const session = await lab.runtime().exec(id, {
        command: ['sleep', String(mark)],
        stdin: false,
        stdout: true,
        stderr: true,
        tty: false,
      });
      await lab.runtime().removeContainer(id);
      assert.equal(await session.exited, 137);
      await eventually('the monitor has ended', async () => (await servants()).length === 0);
      assert.deepEqual(
        (await readdir(join(PIDS, lab.cgroupParent('execs')))).filter((name) => name === id),
        [],
      );
    });
  });
});
