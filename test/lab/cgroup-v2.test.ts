/**
 * A machine with cgroup v2 only, a power cut that loses unsynced data, and a clock that is years behind afterwards. The
 * machine is emulated, so the test takes minutes. Run by `npm run test:lab`.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import { eventually } from '../e2e/harness.ts';
import { kubectls } from '../support/kubectls.ts';
import { VmHost, whyNoVm } from './support/vm-host.ts';

const missing = await whyNoVm();
if (missing !== undefined) console.log(`not run: ${missing}`);

const MiB = 1024 * 1024;
const READY_TIMEOUT_MS = 480_000;

const pod = (name: string, command: string, resources: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: main, image: ${HELLO_IMAGE}, command: [/bin/sh, -c, ${JSON.stringify(command)}], resources: ${resources}}
`;

describe('machine with cgroup v2 only', { skip: missing ?? false }, () => {
  let host: VmHost;

  before(async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'he-image-'));
    try {
      const archive = join(scratch, 'hello.tar');
      await writeHelloImage(archive);
      const files = { '/root/hello.tar': archive, '/usr/local/bin/kubectl': kubectls()[0]?.path ?? 'kubectl' };
      host = await VmHost.create(files, (line) => console.log(line));
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
    await host.boot();
  });

  after(async () => {
    await host?.stop();
  });

  const kubectl = (args: string, timeoutMs?: number): Promise<string> =>
    host.must(`kubectl --kubeconfig /etc/origin/master/admin.kubeconfig ${args}`, timeoutMs);

  const apply = (yaml: string): Promise<string> => kubectl(`apply -f - <<'END'\n${yaml}\nEND`);

  const waitReady = (name: string): Promise<string> => kubectl(`wait pod/${name} --for=condition=Ready --timeout=110s`);

  /** Waits until the host process of this boot reports Ready. */
  async function ready(): Promise<void> {
    try {
      await eventually('node Ready', READY_TIMEOUT_MS, async () => {
        const invocation = 'systemctl show hyperedge -p InvocationID --value';
        return /node \S+ is Ready/.test(
          await host.must(`journalctl --no-pager _SYSTEMD_INVOCATION_ID=$(${invocation})`),
        )
          ? true
          : undefined;
      });
    } catch (error) {
      throw new Error(
        `${String(error)}\n${(await host.shell('journalctl --no-pager -u hyperedge | tail -40')).stdout}`,
      );
    }
  }

  test('a host with cgroup v2 only starts with systemctl and becomes Ready', async () => {
    assert.equal(await host.must('stat -fc %T /sys/fs/cgroup'), 'cgroup2fs');
    await host.must('systemctl enable --now hyperedge');
    await ready();
    await host.must('hyperedge image import /root/hello.tar');
  });

  test('sets cgroup v2 limits of a pod in the slices that the upstream kubelet uses', async () => {
    await apply(
      pod('limited', 'sleep 100000', '{limits: {memory: 32Mi, cpu: 250m}, requests: {memory: 16Mi, cpu: 100m}}'),
    );
    await waitReady('limited');
    const uid = await kubectl('get pod limited -o jsonpath={.metadata.uid}');
    const id = (await kubectl('get pod limited -o jsonpath={.status.containerStatuses[0].containerID}')).replace(
      /.*\//,
      '',
    );
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
    const podPath = `/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/${slice}`;
    for (const level of [podPath, `${podPath}/hyperedge-${id}.scope`]) {
      const values = await host.must(`cd ${level} && cat memory.max cpu.max cpu.weight pids.max`);
      assert.deepEqual(values.split('\n'), [String(32 * MiB), '25000 100000', '4', 'max'], level);
    }
    assert.match(await host.must(`cat ${podPath}/hyperedge-${id}.scope/cgroup.procs`), /^\d+/);
    assert.equal(await host.must(`systemctl show ${slice} -p MemoryMax --value`), String(32 * MiB));
    assert.match(await host.must('cat /proc/$(pgrep -o -f "^/usr/local/bin/hyperedge etcd")/oom_score_adj'), /^-99\d$/);
  });

  test('runs an exec in a separate cgroup, and ends all its processes when the client disconnects', async () => {
    const uid = await kubectl('get pod limited -o jsonpath={.metadata.uid}');
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
    const scope = `/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/${slice}/hyperedge-*.scope`;
    const command = `exec limited -- /bin/sh -c`;
    assert.equal(await kubectl(`${command} 'setsid sleep 86471 & echo ran'`, 60_000), 'ran');
    const [left] = (await host.must('pgrep -f "^sleep 86471"')).split('\n');
    assert.match(
      await host.must(`cat /proc/${left}/cgroup`),
      /\/hyperedge-[0-9a-f]+\.scope$/,
      'charged to the container',
    );
    await host.must(
      `systemd-run --unit=client kubectl --kubeconfig /etc/origin/master/admin.kubeconfig ${command} 'setsid sleep 86472 & sleep 86472'`,
    );
    await eventually('the exec runs', 60_000, async () =>
      (await host.must('pgrep -cf "^sleep 86472" || true')) === '2' ? true : undefined,
    );
    const serving = `for pid in $(cat ${scope}/exec-*/cgroup.procs); do cat /proc/$pid/comm; done | sort | tr '\\n' ' '`;
    let found = '';
    await eventually('the monitor is charged', 30_000, async () => {
      found = await host.must(serving);
      return found.trim() === 'conmon sleep sleep' ? true : undefined;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${found}`);
    });
    await host.must('systemctl kill --signal=SIGKILL client');
    await eventually('the exec ends', 60_000, async () =>
      (await host.must(`pgrep -f "^sleep 86472" || ls -d ${scope}/exec-* 2>/dev/null || echo none`)) === 'none'
        ? true
        : undefined,
    );
    await host.must(`kill -9 ${left}; systemctl reset-failed client || true`);
  });

  test('reports the reason OOMKilled on a host with cgroup v2', async () => {
    await apply(pod('hungry', 'sleep 1; tail /dev/zero', '{limits: {memory: 24Mi}}'));
    await eventually('OOMKilled', 120_000, async () =>
      /OOMKilled/.test(await kubectl('get pod hungry -o jsonpath={.status.containerStatuses[0]}')) ? true : undefined,
    );
    await kubectl('delete pod hungry --now');
    assert.equal(await host.must('systemctl list-units --failed --plain --no-legend'), '');
  });

  test('keeps pods running during systemctl restart', async () => {
    const pids = (): Promise<string> =>
      host.must('pgrep -f "^(sleep 100000|/usr/local/bin/hyperedge (etcd|api|controllers))"');
    const running = await pids();
    assert.equal(running.split('\n').length, 4, running);
    await host.must('systemctl restart hyperedge');
    await ready();
    assert.equal(await pids(), running);
  });

  test('starts with all data after a power cut although the clock is years behind', async () => {
    await kubectl('create configmap just-now --from-literal=k=v');
    await host.cutPower();
    await host.boot({ clock: Date.UTC(2001, 0, 1) / 1000 });
    const year = Number(await host.must('date +%Y'));
    assert.equal(year, 2001);
    await ready();
    assert.equal(await kubectl('get configmap just-now -o jsonpath={.data.k}'), 'v');
    await waitReady('limited');
    // Correct the clock as a time server would; the node stays Ready and pods start.
    await host.must(`date -s @${Math.floor(Date.now() / 1000)}`);
    await apply(pod('later', 'sleep 100000', '{}'));
    await waitReady('later');
    const ready1 = `jsonpath={.items[0].status.conditions[?(@.type=='Ready')].status}`;
    assert.equal(await kubectl(`get nodes -o "${ready1}"`), 'True');
  });
});
