/** Pod fields: each is applied or rejected by name, and every pod can be deleted. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { busyboxLayer, writeDockerArchive } from '../../../build/docker-archive.ts';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { assignments, idle, pod, shell } from '../../e2e/pods/lab.ts';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const run = promisify(execFile);
const ENDS_WITHIN_MS = 15_000;

/** A variable from a file in a volume (KEP-3721). */
const FROM_FILE: object = { env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'A' } } }] };

/** Imports an image with groups for the user `app`, and one with a user other than root. */
let imported: Promise<void> | undefined;
const importImages = (lab: AttackLab): Promise<void> => {
  imported ??= writeAndImport(lab);
  return imported;
};

async function writeAndImport(lab: AttackLab): Promise<void> {
  const layer = await busyboxLayer();
  const file = (name: string, text: string) => ({
    name,
    type: 'file' as const,
    mode: 0o644,
    content: Buffer.from(text),
  });
  const accounts = [
    file('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/:/bin/sh\n'),
    file('etc/group', 'root:x:0:\napp:x:1000:\nextra:x:4242:app\n'),
  ];
  const archive = join(lab.pods.scratch, 'pod-fields.tar');
  const config = { Env: ['PATH=/bin'], Cmd: ['/bin/sh'] };
  await writeDockerArchive(archive, [
    { tag: 'hyperedge.local/groups:1', layers: [layer, accounts], config },
    { tag: 'hyperedge.local/app:1', layers: [layer], config: { ...config, User: '1000' } },
  ]);
  const { appliance } = lab.pods;
  const result = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
  assert.equal(result.code, 0, result.stderr);
}

async function ends(lab: AttackLab, name: string, namespace = 'default'): Promise<void> {
  await lab.pods.kubectl('delete', 'pod', name, '-n', namespace, '--wait=false');
  const gone = (): true | undefined => (lab.pods.pod(name, namespace) === undefined ? true : undefined);
  await lab.pods.untilPods(`${name} is deleted`, gone, ENDS_WITHIN_MS);
}

export const cases: readonly AttackCase[] = [
  {
    finding: 4,
    title: 'a Windows pod passes the restricted profile, but never runs and can be deleted',
    attack: async (lab) => {
      const { namespace } = await lab.tenant('edit', { 'pod-security.kubernetes.io/enforce': 'restricted' });
      await importImages(lab);
      const securityContext = { runAsNonRoot: true };
      const containers = [idle({ image: 'hyperedge.local/app:1' })];
      await lab.pods.apply(pod('windows', { os: { name: 'windows' }, securityContext, containers }, { namespace }));
      const over = await lab.pods.untilPods('windows refused', () => {
        const seen = lab.pods.pod('windows', namespace);
        return seen?.status?.phase === 'Failed' ? seen : undefined;
      });
      assert.equal(over.status?.reason, 'PodOSNotSupported');
      assert.match(over.status.message ?? '', /OS field doesn't match node OS/);
      assert.equal(over.status.containerStatuses, undefined);
      await ends(lab, 'windows', namespace);
    },
  },
  {
    finding: 4,
    title: 'a pod can be deleted although the API rejects its status except for the phase',
    attack: async (lab) => {
      // A policy rejects every status field of the pod except the phase.
      const policy = 'status-refused';
      const name = 'refused-status';
      const match = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods/status'], operations: ['UPDATE'] };
      const admission = 'admissionregistration.k8s.io/v1';
      await lab.pods.apply(
        {
          apiVersion: admission,
          kind: 'ValidatingAdmissionPolicy',
          metadata: { name: policy },
          spec: {
            failurePolicy: 'Ignore',
            matchConstraints: { resourceRules: [match] },
            matchConditions: [{ name: 'one', expression: `object.metadata.name == '${name}'` }],
            validations: [{ expression: '!has(object.status.containerStatuses)', message: 'no container statuses' }],
          },
        },
        {
          apiVersion: admission,
          kind: 'ValidatingAdmissionPolicyBinding',
          metadata: { name: policy },
          spec: { policyName: policy, validationActions: ['Deny'] },
        },
      );
      try {
        await lab.pods.apply(pod(name, {}));
        await lab.pods.until(name, 'its phase', (seen) => /^status: /.test(seen.status?.message ?? ''));
        await ends(lab, name);
      } finally {
        await lab.pods.kubectl('delete', 'validatingadmissionpolicy,validatingadmissionpolicybinding', policy);
      }
    },
  },
  {
    finding: 11,
    title: 'supplementalGroupsPolicy Strict omits the groups of the image',
    attack: async (lab) => {
      await importImages(lab);
      const groups = (policy: string): Pod =>
        pod(`groups-${policy.toLowerCase()}`, {
          restartPolicy: 'Never',
          securityContext: { runAsUser: 1000, supplementalGroups: [7], supplementalGroupsPolicy: policy },
          containers: [shell('id -G', { image: 'hyperedge.local/groups:1' })],
        });
      await lab.pods.apply(groups('Merge'), groups('Strict'));
      const reported: unknown[] = [];
      for (const name of ['groups-merge', 'groups-strict']) {
        const over = await lab.pods.over(name);
        const [status] = over.status?.containerStatuses ?? [];
        reported.push(status?.user?.linux);
      }
      assert.equal((await lab.pods.logs('groups-merge')).trim(), '1000 7 4242');
      assert.equal((await lab.pods.logs('groups-strict')).trim(), '1000 7');
      assert.deepEqual(reported, [
        { uid: 1000, gid: 1000, supplementalGroups: [7, 4242] },
        { uid: 1000, gid: 1000, supplementalGroups: [7] },
      ]);
      const features = await lab.pods.kubectl('get', 'nodes', '-o', 'jsonpath={.items[0].status.features}');
      assert.equal(features, '{"supplementalGroupsPolicy":true}');
      await lab.pods.remove('groups-merge', 'groups-strict');
    },
  },
  {
    finding: 12,
    title: 'recursiveReadOnly Enabled also makes nested mounts of the volume read-only',
    attack: async (lab) => {
      const path = join(lab.pods.scratch, 'recursive');
      const below = join(path, 'below');
      await mkdir(below, { recursive: true });
      await run('mount', ['-t', 'tmpfs', 'recursive', below]);
      try {
        const mounts = ['Disabled', 'IfPossible', 'Enabled'].map((recursiveReadOnly) => ({
          name: 'v',
          mountPath: `/${recursiveReadOnly}`,
          readOnly: true,
          recursiveReadOnly,
        }));
        const tries = 'for m in Disabled IfPossible Enabled; do touch /$m/below/$m 2>/dev/null; echo "$m=$?"; done';
        await lab.pods.apply(
          pod('recursive', {
            restartPolicy: 'Never',
            volumes: [{ name: 'v', hostPath: { path } }],
            containers: [shell(tries, { volumeMounts: mounts })],
          }),
        );
        const over = await lab.pods.over('recursive');
        const output = assignments(await lab.pods.logs('recursive'));
        assert.deepEqual([...output.values()], ['0', '1', '1']);
        assert.deepEqual(await readdir(below), ['Disabled']);
        const modes = over.status?.containerStatuses?.[0]?.volumeMounts
          ?.filter((mount) => mount.name === 'v')
          .map((mount) => mount.recursiveReadOnly);
        assert.deepEqual(modes, ['Disabled', 'Enabled', 'Enabled']);
        await ends(lab, 'recursive');
      } finally {
        await run('umount', ['--lazy', below]);
      }
    },
  },
  {
    finding: 12,
    title: 'a pod with a field that the node does not support is blocked, without replacement pods in a loop',
    attack: async (lab) => {
      const template = {
        metadata: { labels: { app: 'asks' } },
        spec: { terminationGracePeriodSeconds: 1, containers: [idle()], hostUsers: false, shareProcessNamespace: true },
      };
      await lab.pods.apply(
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'asks', namespace: 'default' },
          spec: { selector: { matchLabels: { app: 'asks' } }, template },
        },
        pod('asks-file', { containers: [idle(FROM_FILE)] }),
        pod('asks-nfs', { volumes: [{ name: 'n', nfs: { server: '127.0.0.1', path: '/' } }] }),
      );
      const deployed = await lab.pods.untilPods('asks blocked', () =>
        lab.pods
          .podsOf('asks-')
          .find(({ metadata, status }) => metadata?.labels?.['app'] !== undefined && status?.reason),
      );
      assert.deepEqual(
        [deployed.status?.phase, deployed.status?.reason, deployed.status?.message],
        ['Pending', 'PodFieldNotSupported', 'spec.shareProcessNamespace: not supported by this node; remove the field'],
      );
      assert.equal(deployed.status?.containerStatuses?.[0]?.state?.waiting?.reason, 'Blocked');
      const file = await lab.pods.until('asks-file', 'blocked', (seen) => seen.status?.reason !== undefined);
      assert.match(
        file.status?.message ?? '',
        /^spec\.containers\[0\]\.env\[0\]\.valueFrom\.fileKeyRef: not supported/,
      );
      await lab.pods.event('asks-nfs', 'FailedMount', /mount\.nfs|mount failed/);
      assert.equal(lab.pods.pod('asks-nfs')?.status?.phase, 'Pending');
      assert.equal(lab.pods.podsOf('asks-').filter(({ metadata }) => metadata?.labels?.['app'] === 'asks').length, 1);
      await lab.pods.kubectl('delete', 'deployment', 'asks', '--wait=false');
      await Promise.all(['asks-file', 'asks-nfs'].map((name) => ends(lab, name)));
      await ends(lab, deployed.metadata?.name ?? '').catch(() => {});
      assert.deepEqual(lab.pods.podsOf('asks-'), []);
    },
  },
];
