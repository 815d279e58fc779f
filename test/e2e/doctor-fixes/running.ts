/** Faults of a host that runs. */
import { join } from 'node:path';
import { eventually } from '../harness.ts';
import { type Drill, type Fault, GATEWAY, TLS_REGISTRY } from './drill.ts';
import { APP, archiveOf, FOREIGN, MISSING } from './images.ts';

const own = (drill: Drill, path: string): string => join(drill.root, path);

/** A Deployment with one pod. */
const deployment = (name: string, image: string, command: readonly string[]): string =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command }],
        },
      },
    },
  });

const SLEEP = ['/bin/sleep', '100000'];
const apply = async ({ host }: Drill, text: string): Promise<void> => {
  await host.must(['apply', '-f', '-'], { input: text });
};
const remove = async ({ host }: Drill, name: string): Promise<void> => {
  await host.must(['delete', 'deployment', name, '--wait=false']);
};

const network: readonly Fault[] = [
  {
    id: 'firewall-forward',
    what: 'a foreign rule drops packets of pods',
    provoke: async (drill) => {
      await drill.must(
        "nft 'add table ip lab; add chain ip lab f { type filter hook forward priority 0; }; add rule ip lab f drop'",
      );
    },
    evidence: /the rule "drop" in chain ip lab f/,
    fix: 'nft delete rule ip lab f handle …',
  },
  {
    id: 'firewall-forward',
    what: 'a foreign chain drops forwarded packets',
    provoke: async (drill) => {
      await drill.must("nft 'add chain ip lab g { type filter hook forward priority 1; policy drop; }'");
    },
    evidence: /chain ip lab g has the policy drop/,
    fix: 'nft insert rule ip lab g iifname … accept…',
    cleanUp: async (drill) => {
      await drill.must('nft delete table ip lab');
    },
  },
  {
    id: 'firewall-input',
    what: 'a foreign chain closes the ports of components',
    provoke: async (drill) => {
      await drill.must(
        "nft 'add table ip lab; add chain ip lab i { type filter hook input priority 0; policy drop; }; add rule ip lab i ct state established,related accept; add rule ip lab i iif lo accept; add rule ip lab i tcp dport 22 accept'",
      );
    },
    evidence: /chain ip lab i has the policy drop and accepts no packets to .*8443\/tcp/,
    fix: 'nft insert rule … tcp dport … accept…',
    cleanUp: async (drill) => {
      await drill.must('nft delete table ip lab');
    },
  },
  {
    id: 'mtu',
    what: 'a link has an MTU below 1280',
    provoke: async (drill) => {
      await drill.must(
        'ip link add lab0 mtu 1000 type veth peer name lab0p && ip link set lab0 up && ip link set lab0p up',
      );
    },
    evidence: /lab0 has an MTU of 1000/,
    fix: 'ip link set lab0 mtu 1500',
    cleanUp: async (drill) => {
      await drill.must('ip link del lab0');
    },
  },
  {
    id: 'default-route',
    what: 'two default routes have the same metric',
    provoke: async (drill) => {
      await drill.must(
        'ip link add lab1 type veth peer name lab1p && ip link set lab1p up && ip addr add 192.0.2.1/24 dev lab1 && ip link set lab1 up && ip route append default via 192.0.2.254 dev lab1 metric 100',
      );
    },
    evidence: /default routes of equal metric over eth0 and lab1/,
    fix: 'ip route add default … && ip route del default …',
    cleanUp: async (drill) => {
      await drill.must('ip link del lab1');
    },
  },
  {
    id: 'name-resolution',
    what: 'a name server does not answer',
    place: 'copy',
    provoke: async (drill) => {
      const file = join(drill.scratch, 'resolv.conf');
      await drill.must(
        `printf 'nameserver ${GATEWAY}\\nnameserver 172.30.0.10\\n' > ${file} && touch /etc/resolv.conf && mount --bind ${file} /etc/resolv.conf`,
        'copy',
      );
    },
    evidence: /name server 10\.88\.0\.254 does not answer/,
    fix: "… grep -vwF 'nameserver …' … > /etc/resolv.conf    # …",
    cleanUp: async (drill) => {
      await drill.must('umount /etc/resolv.conf; rm /run/resolv.conf.bad', 'copy');
    },
  },
  {
    id: 'registries',
    what: 'the authority of a registry was copied, but not installed',
    place: 'copy',
    provoke: async (drill) => {
      await drill.must(`cp ${drill.scratch}/ca.crt /usr/local/share/ca-certificates/lab.crt`, 'copy');
    },
    evidence: new RegExp(`^${TLS_REGISTRY}: .*certificate`),
    fix: 'update-ca-certificates',
  },
];

const files: readonly Fault[] = [
  {
    id: 'private-files',
    what: 'a key can be read by all users',
    provoke: async (drill) => {
      await drill.must(`chmod 644 ${own(drill, 'etc/origin/master/admin.key')}`);
    },
    evidence: /admin\.key/,
    fix: 'chmod …',
  },
  {
    id: 'static-pods',
    what: 'the manifest of a static pod is damaged',
    provoke: async (drill) => {
      const directory = own(drill, 'etc/origin/node/pods');
      await drill.must(`echo 'kind: [' > ${directory}/bad.yaml`);
    },
    evidence: /^static pod \S+bad\.yaml: /,
    fix: 'mv …/pods/bad.yaml …/pods/.bad.yaml    # …',
  },
  {
    id: 'deploy-directory',
    what: 'a file of the deploy directory is damaged',
    provoke: async (drill) => {
      const directory = own(drill, 'etc/origin/manifests');
      await drill.must(`mkdir -p ${directory} && echo 'kind: [' > ${directory}/bad.yaml`);
    },
    evidence: /^bad\.yaml: document 1/,
    fix: 'touch …/manifests/bad.yaml.skip    # …',
  },
  {
    id: 'kubeconfig',
    what: 'the port of a kubeconfig is dead',
    provoke: async (drill) => {
      await drill.must(`sed -i 's#server: .*#server: https://127.0.0.1:1#' ${drill.host.kubeconfig}`);
    },
    provokesAgain: true,
    evidence: /admin\.kubeconfig: https:\/\/127\.0\.0\.1:1: /,
    fix: "sed -i 's#…server: …#…https://…#' …/admin.kubeconfig",
  },
  {
    id: 'snapshots',
    what: 'the schedule of snapshots is off, and there is none',
    provoke: async (drill) => {
      const off = await drill.host.hyperedge(['snapshot', 'schedule', '--off', '--root', drill.root]);
      if (off.code !== 0) throw new Error(off.stderr);
      await drill.must(`rm -rf ${own(drill, 'var/lib/origin/snapshots')}`);
    },
    evidence: /has no snapshot/,
    fix: '… snapshot save …; … snapshot schedule --on …',
  },
  {
    id: 'leftover-mounts',
    what: 'a mount of an ended pod is left',
    provoke: async (drill) => {
      const at = own(drill, 'var/lib/origin/openshift.local.volumes/pods/0-0/volumes/lab');
      await drill.must(`mkdir -p ${at} && mount -t tmpfs tmpfs ${at}`);
    },
    evidence: /pods\/0-0\/volumes\/lab is mounted, but belongs to no pod/,
    fix: 'mount --make-rprivate … && umount -l …',
  },
  {
    id: 'leftover-namespaces',
    what: 'a network namespace of an ended pod is left',
    provoke: async (drill) => {
      const at = own(drill, 'run/hyperedge/containers/sandboxes/0123456789');
      await drill.must(`mkdir -p ${at} && touch ${at}/net && mount --bind /proc/self/ns/net ${at}/net`);
    },
    evidence: /network namespace .*0123456789\/net belongs to no pod/,
    fix: 'umount …/net && rm …/net',
  },
  {
    id: 'time-zone',
    what: 'the time zone of the host does not exist',
    place: 'copy',
    provoke: async (drill) => {
      await drill.must('ln -sf /usr/share/zoneinfo/Mars/Olympus /etc/localtime', 'copy');
    },
    evidence: /Mars\/Olympus, which does not exist/,
    fix: 'ln -sf /usr/share/zoneinfo/UTC /etc/localtime',
  },
  {
    id: 'journal-size',
    what: 'the journal has no limit',
    place: 'copy',
    provoke: async (drill) => {
      await drill.must('fallocate -l 1100M /var/log/journal/0/system.journal', 'copy');
    },
    evidence: /\/var\/log\/journal has 1\.1 GiB without a limit/,
    fix: '…SystemMaxUse=200M… > …/size.conf && … journalctl --vacuum-size=200M',
    cleanUp: async (drill) => {
      await drill.must('rm /var/log/journal/0/system.journal', 'copy');
    },
  },
];

const pods: readonly Fault[] = [
  {
    id: 'images',
    what: 'an image is missing, and its registry',
    provoke: (drill) => apply(drill, deployment('missing', MISSING, SLEEP)),
    evidence: /default\/missing-\S+: (?:ErrImagePull|ImagePullBackOff): lab\.invalid\/missing:1/,
    fix: 'docker save … -o image.tar && … image import image.tar…',
    // The host of the test has no Docker, so its archive is prepared.
    prepare: async (drill) => {
      const docker = join(drill.scratch, 'bin/docker');
      const script = `#!/bin/sh\ntest "$1 $2 $3" = 'save ${MISSING} -o' && cp ${archiveOf(drill, 'missing')} "$4"\n`;
      await drill.must(`printf '%s' ${quoted(script)} > ${docker} && chmod 755 ${docker}`);
    },
    cleanUp: (drill) => remove(drill, 'missing'),
  },
  {
    id: 'image-architecture',
    what: 'an image is for another processor',
    provoke: async (drill) => {
      const imported = await drill.host.hyperedge([
        'image',
        'import',
        '--root',
        drill.root,
        archiveOf(drill, 'foreign'),
        '--platform',
        `linux/${FOREIGN}`,
      ]);
      if (imported.code !== 0) throw new Error(imported.stderr);
      await apply(drill, deployment('web', APP, SLEEP));
    },
    evidence: new RegExp(`default/web-\\S+: image ${APP} is for ${FOREIGN}`),
    fix: '… image remove … && … image pull …    # …',
  },
  {
    id: 'pods',
    what: 'a new revision has a wrong command',
    provoke: async (drill) => {
      await eventually('the rollout of web', 120_000, async () => {
        const ran = await drill.host.kubectl(['rollout', 'status', 'deployment/web', '--timeout=5s']);
        return ran.code === 0 ? true : undefined;
      });
      await apply(drill, deployment('web', APP, ['/bin/wrong']));
    },
    evidence: /default\/web-\S+ \(main\): /,
    fix: '… describe pod web-…; … rollout undo deployment/web',
  },
];

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export const RUNNING: readonly Fault[] = [...network, ...files, ...pods];
