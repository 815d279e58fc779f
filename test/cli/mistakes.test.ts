/**
 * Typical mistakes on a host without an installation: the command must print one line with cause and fix, quickly and
 * without error numbers.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { main } from '../../src/cli/index.ts';

const QUICK_MS = 15_000;
const DEAD = '--endpoints http://127.0.0.1:1';

/** Arguments, exit code and line on stderr. `{root}` is an empty directory. */
const MISTAKES: readonly (readonly [argv: string, code: 1 | 2, stderr: RegExp])[] = [
  ['statsu', 2, /unknown command "statsu"; did you mean status\?$/],
  ['image improt x', 2, /unknown command "image improt"; did you mean image import\?$/],
  ['snapsot save', 2, /unknown command "snapsot"; did you mean snapshot\?$/],
  ['gett pods', 2, /unknown command "gett"; did you mean get\?$/],
  ['frobnicate', 2, /unknown command "frobnicate": see hyperedge --help$/],
  ['status --verbos', 2, /unknown flag "--verbos"; did you mean --verbose\?$/],
  ['help snapsot', 2, /help: no command or topic "snapsot"; did you mean snapshot\?$/],
  ['completion tcsh', 2, /completion tcsh: give bash, zsh, fish$/],
  ['status extra', 2, /usage: hyperedge status /],
  ['status -o yml', 2, /-o yml: give json, yaml or wide$/],
  ['status --colour', 2, /unknown flag "--colour": see hyperedge status --help$/],
  [
    'status --root {root}',
    1,
    /the host process does not run here .*; run systemctl start hyperedge, or name its --root$/,
  ],
  ['master-restart', 2, /usage: hyperedge master-restart api\|controllers\|etcd$/],
  ['master-restart apiserver', 2, /unknown component "apiserver": give api, controllers, etcd$/],
  ['master-restart api --root {root}', 1, /the host process does not run here/],
  ['master-logs', 2, /usage: hyperedge master-logs/],
  ['master-logs kubelet', 2, /unknown component "kubelet": give api, controllers, etcd$/],
  ['master-logs api --root {root}', 1, /api has no log below .*; run the command on a master, or name its --root$/],
  ['master-logs api --tail x', 2, /--tail=x: give a whole number/],
  ['image import', 2, /usage: hyperedge image import/],
  ['image import /nope.tar --root {root}', 1, /\/nope\.tar: does not exist; check the path$/],
  ['image import /etc --root {root}', 1, /\/etc: is a directory; give a file$/],
  ['image import /etc/passwd --root {root}', 1, /image archive \/etc\/passwd: .*not a tar archive$/],
  ['image remove nosuch:1 --root {root}', 1, /image nosuch:1 is not in the store; see hyperedge image list$/],
  ['image pin nosuch:1 --root {root}', 1, /image nosuch:1 is not in the store; see hyperedge image list$/],
  ['image verify nosuch --root {root}', 1, /is not in the store; see hyperedge image list$/],
  ['image export nosuch:1', 2, /hyperedge image export|--output/],
  ['image export nosuch:1 -f /tmp/x', 2, /unknown flag "-f": see hyperedge image export --help$/],
  [
    'image pull localhost:1/x:1 --root {root}',
    1,
    /registry localhost:1 cannot be reached: .*refuses connections; check that/,
  ],
  [`snapshot save ${DEAD} --root {root}`, 1, /127\.0\.0\.1:1: refuses connections; check that the server runs/],
  ['snapshot save --root {root}', 1, /this host has no store; give --endpoints$/],
  ['snapshot save --keep 0 --root {root}', 2, /--keep=0: give a whole number from 1/],
  ['snapshot status /nope.db', 1, /\/nope\.db.* does not exist/],
  ['snapshot status /etc/passwd', 1, /\/etc\/passwd is not a snapshot of this store$/],
  ['snapshot restore --root {root}', 2, /snapshot restore: give a file, or --from-etcd$/],
  ['snapshot restore /nope.db --root {root}', 1, /cannot read \/nope\.db: does not exist; check the path$/],
  ['snapshot list --directory /nope', 2, /--directory=\/nope: does not exist; give the directory of the snapshots$/],
  ['snapshot schedule --every x --root {root}', 2, /--every=x: give minutes, hours or days such as 30m, 6h or 7d$/],
  ['snapshot push /nope.db', 2, /snapshot push: give --endpoints$/],
  ['members --root {root}', 1, /this host has no store; give --endpoints$/],
  [`members ${DEAD} --root {root}`, 1, /127\.0\.0\.1:1: refuses connections; check/],
  ['members add x', 2, /usage: hyperedge members add NAME PEER-URL/],
  ['members add x not-a-url', 2, /members add: "not-a-url" is not a peer URL; give one such as/],
  ['members remove', 2, /usage: hyperedge members remove NAME\|ID$/],
  ['members recover --root {root}', 1, /etcd\.conf\.yaml: does not exist; check the path$/],
  ['token create --root {root}', 1, /master-config\.yaml does not exist; hyperedge run writes it$/],
  ['token create --ttl 5', 2, /--ttl=5: give a duration of at least a minute such as 90m, 24h or 7d$/],
  ['token create --roles boss --root {root}', 1, /--roles: "boss" is not a role; give some of master,etcd,node$/],
  [
    'token list --root {root}',
    1,
    /admin\.kubeconfig does not exist; run the command on a master, with its --root if it has one$/,
  ],
  ['token revoke', 2, /usage: hyperedge token revoke TOKEN$/],
  ['token revoke abc --root {root}', 1, /abc: is not a token id; see hyperedge token list$/],
  ['ca rotate', 2, /--phase is missing: give new-ca, reissue, finish, in this order$/],
  ['ca rotate --phase start', 2, /--phase=start: give new-ca, reissue, finish$/],
  ['ca rotate --phase finish --signer x', 2, /--signer=x: give cluster, etcd, front-proxy, service-accounts$/],
  ['ca rotate --phase finish --root {root}', 1, /does not exist|does not hold/],
  ['config check extra', 2, /usage: hyperedge config check/],
  ['revisions list foo --root {root}', 1, /foo: no such component; give one of etcd, kube-apiserver/],
  ['revisions diff kube-apiserver x', 2, /revision "x": give the number of a revision/],
  ['revisions diff kube-apiserver 7 --root {root}', 1, /revision 7 is not on this host; see hyperedge revisions list$/],
  ['revisions rollback api 1 --root {root}', 1, /api: no such component; give one of/],
  [
    'gossip members --root {root}',
    1,
    /no member of a gossip ring runs here .*; run systemctl start hyperedge, or name its --root$/,
  ],
  ['gossip join', 2, /usage: hyperedge gossip join ADDRESS/],
  ['gossip keys', 2, /usage: hyperedge gossip keys list\|install\|use\|remove/],
  [
    'rig list --root {root}',
    1,
    /admin\.kubeconfig does not exist; run the command on a master, with its --root if it has one$/,
  ],
  ['rig claim', 2, /rig claim: give either the name of a rig or --selector$/],
  ['rig console nope --root {root}', 1, /admin\.kubeconfig does not exist/],
  ['rig power nope sideways', 2, /rig power nope: give on, off or cycle before the name of the claim$/],
  ['bundle verify', 2, /usage: hyperedge bundle verify FILE/],
  ['bundle verify /nope --root {root}', 1, /cannot read \/nope: does not exist; check the path$/],
  ['bundle verify /etc/passwd --root {root}', 1, /\/etc\/passwd: the file is not a release bundle$/],
  ['bundle list --root {root}', 1, /admin\.kubeconfig is missing: run the command on a master/],
  ['secrets-encrypt status --root {root}', 1, /master-config\.yaml does not exist; hyperedge run writes it$/],
  ['install --join https://127.0.0.1:1 --token x --root {root}', 2, /give --join, --token and --ca-hash together/],
  ['install --nosuch', 2, /unknown flag "--nosuch": see hyperedge install --help$/],
  ['run --config /nope.yaml --root {root}', 1, /\/nope\.yaml does not exist; name an existing file or omit --config$/],
  ['run --root /etc/passwd', 1, /\/etc\/passwd\/.*: a part of the path is not a directory; check the path$/],
  ['api --no-such-flag', 2, /unknown flag --no-such-flag: see hyperedge api --help$/],
  ['api --config /nope.yaml', 1, /\/nope\.yaml does not exist; hyperedge run writes it$/],
  ['controllers --nosuch', 2, /unknown flag "--nosuch": see hyperedge controllers --help$/],
  ['etcd --nosuch', 2, /unknown flag --nosuch: see hyperedge etcd --help$/],
  ['etcd --data-dir /etc/passwd', 1, /\/etc\/passwd: exists already; remove it or give another path$/],
  ['keepalived-config --root {root}', 1, /no shared address; give --address, or set vip\.address in bootstrap\.yaml$/],
  ['sysinfo extra', 2, /usage: hyperedge sysinfo/],
  ['version -o foo', 2, /-o foo: give json, yaml or wide$/],
];

const ERROR_NUMBER = /\bE[A-Z]{3,}\b|EAI_|syscall|at .*\.ts:\d|undefined|\[object/;

describe('errors of commands without an installation', { concurrency: 4 }, () => {
  let root = '';
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'he-mistakes-'));
  });
  after(() => rm(root, { recursive: true, force: true }));
  for (const [line, expected, shown] of MISTAKES)
    test(line, { timeout: 60_000 }, async () => {
      let [stdout, stderr] = ['', ''];
      const out = {
        stdout: (text: string) => {
          stdout += text;
        },
        stderr: (text: string) => {
          stderr += text;
        },
      };
      const beganMs = performance.now();
      const argv = line.replaceAll('{root}', root).split(' ');
      const code = await main({ argv, argv0: 'hyperedge', out });
      assert.deepEqual([code, stdout], [expected, ''], stderr);
      assert.match(stderr.trimEnd(), shown);
      assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
      assert.doesNotMatch(stderr, ERROR_NUMBER);
      assert.ok(performance.now() - beganMs < QUICK_MS);
    });
});
