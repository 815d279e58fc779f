/** Faults of a host that is stopped, and those whose fix starts it again; the store's alarm restarts one component. */
import { createPrivateKey } from 'node:crypto';
import { readFile, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, masterFiles } from '../../../src/pki/index.ts';
import { eventually, run } from '../harness.ts';
import { type Drill, type Fault, GATEWAY, must, PLAIN_REGISTRY } from './drill.ts';
import { archiveOf, BULK_BYTES } from './images.ts';

const DAY_MS = 24 * 3_600_000;
/** Free space in bytes below which the doctor reports a full disk, as in its check. */
const FULL_BYTES = 200 << 20;
/**
 * Factor for the number of used inodes: fewer than the required 5 % of inodes remain free, and more than 5 % after the
 * files of the image are removed.
 */
const INODE_RESERVE = 1.02;

const resize = async (drill: Drill, option: string): Promise<void> => {
  must(await run('mount', ['-o', `remount,${option}`, drill.root]), option);
};

async function importBulk(drill: Drill): Promise<void> {
  const { host, root } = drill;
  must(await host.hyperedge(['image', 'import', '--root', root, archiveOf(drill, 'bulk')]), 'image import');
}

async function expire(drill: Drill): Promise<void> {
  const files = masterFiles(drill.root).scheduler;
  const key = createPrivateKey(await readFile(files.key, 'utf8'));
  const past = { notBeforeMs: Date.now() - 60 * DAY_MS, notAfterMs: Date.now() - 30 * DAY_MS };
  await writeFile(files.cert, (await createAuthority('system:kube-scheduler', past, key)).certPem);
}

export const STOPPED: readonly Fault[] = [
  {
    id: 'kernel-settings',
    what: 'a sysctl file disables forwarding',
    provoke: async (drill) => {
      await drill.must('sysctl -w net.ipv4.ip_forward=0');
    },
    evidence: /net\.ipv4\.ip_forward is 0/,
    fix: 'sysctl -w net.ipv4.ip_forward=1',
  },
  {
    id: 'disk-space',
    what: 'unused images fill the disk',
    provoke: async (drill) => {
      await importBulk(drill);
      const { blocks, bavail, bsize } = await statfs(drill.root);
      await resize(drill, `size=${(blocks - bavail) * bsize + FULL_BYTES - BULK_BYTES / 2}`);
    },
    evidence: /root has .* of .* free/,
    fix: '… image remove --unused…; journalctl --vacuum-size=…; du …',
    cleanUp: (drill) => resize(drill, 'size=1g'),
  },
  {
    id: 'inodes',
    what: 'unused images use all inodes',
    provoke: async (drill) => {
      await importBulk(drill);
      const { files, ffree } = await statfs(drill.root);
      const used = files - ffree;
      await resize(drill, `nr_inodes=${Math.ceil(used * INODE_RESERVE)}`);
    },
    evidence: /root has \d+ of \d+ inodes free/,
    fix: '… image remove --unused…; du -x --inodes …',
    cleanUp: (drill) => resize(drill, 'nr_inodes=200000'),
  },
  {
    id: 'ports',
    what: 'another program listens on the kubelet’s port',
    provoke: async (drill) => {
      const listen = 'require("net").createServer().listen(10250)';
      drill.start(`exec ${process.execPath} -e '${listen}'`);
    },
    evidence: /tcp port 10250 for the kubelet is in use by \S+ \(pid \d+\)/,
    fix: 'kill …    # or set ports.kubelet in …',
  },
  {
    id: 'certificates',
    what: 'a certificate expired while the host was off',
    provoke: expire,
    evidence: /kube-scheduler\.crt expired on /,
    fix: '… run …    # …',
    starts: true,
  },
  {
    id: 'services',
    what: 'rules and routes of services are lost',
    provoke: async (drill) => {
      await eventually('a running pod', 120_000, async () => {
        const ran = await drill.host.kubectl(['wait', '--for=condition=Available', 'deployment/web', '--timeout=5s']);
        return ran.code === 0 ? true : undefined;
      });
      // The status of a pod that the previous faults ended can be old.
      await eventually('a pod that reaches services', 120_000, async () =>
        (await drill.report('services')).result === 'ok' ? true : undefined,
      );
      await drill.stopHost('KILL');
      await drill.must('nft flush ruleset; ip route del 172.30.0.0/16');
    },
    evidence: /^from \S+: 172\.30\.0\.1:443: /,
    fix: '… run …    # …',
    starts: true,
  },
  {
    id: 'default-route',
    what: 'the host has an address, but no default route',
    provoke: async (drill) => {
      await drill.must('ip route del default');
    },
    evidence: /no default route; the node uses 10\.88\.0\.1$/,
    fix: '… > …/60-node-ip.yaml && kill …; … run …    # …',
    starts: true,
    cleanUp: async (drill) => {
      await drill.must(`ip route add default via ${GATEWAY} dev eth0 metric 100`);
    },
  },
  {
    id: 'registries',
    what: 'the proxy refuses; the registry answers without it',
    provoke: async (drill) => {
      const proxy = `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nproxy: {httpProxy: 'http://${GATEWAY}:9'}\n`;
      await writeFile(join(drill.root, 'etc/origin/bootstrap.yaml.d/40-proxy.yaml'), proxy);
    },
    evidence: new RegExp(`^${PLAIN_REGISTRY} through http://${GATEWAY}:9: `),
    fix: '… > …/60-no-proxy.yaml && kill …; … run …',
    starts: true,
  },
  {
    id: 'host-process',
    what: 'the host process is stopped',
    provoke: (drill) => drill.stopHost('TERM'),
    evidence: /./,
    fix: '… run …',
    starts: true,
  },
  {
    id: 'store-alarms',
    what: 'the history of the store has reached its quota',
    provoke: fillStore,
    evidence: /NOSPACE/,
    fix: '… members compact…    # …',
    cleanUp: async ({ host }) => {
      await host.must(['delete', 'configmap', 'large']);
    },
  },
];

/** Lowers the quota, and changes one object until no change is accepted. */
async function fillStore({ host, root }: Drill): Promise<void> {
  const file = join(root, 'etc/etcd/etcd.conf.yaml');
  const text = await readFile(file, 'utf8');
  const rest = text.replace(/^quota-backend-bytes:.*\n/m, '');
  await writeFile(file, `${rest}quota-backend-bytes: ${32 << 20}\n`);
  await eventually('the API server', 120_000, async () =>
    (await host.kubectl(['get', '--raw', '/readyz'])).code === 0 ? true : undefined,
  );
  must(await host.hyperedge(['master-restart', 'etcd', '--root', root]), 'master-restart etcd');
  await eventually('a full store', 120_000, async () => {
    const data = { large: Array.from({ length: 90_000 }, () => Math.random().toString(36).slice(2)).join('') };
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'large' },
      data: { text: data.large.slice(0, 900_000) },
    };
    const changed = await host.kubectl(['apply', '--server-side', '-f', '-'], { input: JSON.stringify(object) });
    return /exceeded|space/i.test(changed.stderr) ? true : undefined;
  });
}
