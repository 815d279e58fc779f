/** Block volumes, sizes and network file systems of the embedded provisioner and the host's tools. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { HungFileSystem } from '../../support/hung-file-system.ts';
import { eventually } from '../harness.ts';
import { helloImage } from '../images.ts';
import { idle, type PodLab, pod, shell } from './lab.ts';

const LIMIT = { timeout: 120_000 };
const claim = (name: string, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '4Mi' } }, ...more },
});
const user = (name: string, claimName: string, container = idle()): object =>
  pod(name, { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }], containers: [container] });

export function storageTests(lab: () => PodLab): void {
  const grown = (name: string, size: string): Promise<true> =>
    eventually(`${name} to be ${size}`, 40_000, async () => {
      const text = await lab().kubectl('get', 'pvc', name, '-o', 'jsonpath={.status.capacity.storage}');
      return text === size ? true : undefined;
    });
  const grow = (name: string, storage: string): Promise<string> =>
    lab().kubectl(
      ...[
        'patch',
        'pvc',
        name,
        '--type=merge',
        '-p',
        JSON.stringify({ spec: { resources: { requests: { storage } } } }),
      ],
    );

  test('provides a local block volume of the requested size, which grows with its claim', LIMIT, async () => {
    await lab().apply(
      claim('raw-local', { volumeMode: 'Block' }),
      user(
        'raw-user',
        'raw-local',
        shell("trap 'exit 0' TERM; echo written > /dev/raw && head -c 7 /dev/raw; sleep 1000 & wait", {
          volumeDevices: [{ name: 'data', devicePath: '/dev/raw' }],
        }),
      ),
    );
    await lab().ready('raw-user');
    const size = async (): Promise<number> => Number(await lab().exec('raw-user', 'sh', '-c', 'wc -c < /dev/raw'));
    assert.equal(await size(), 4 << 20);
    await grow('raw-local', '8Mi');
    await grown('raw-local', '8Mi');
    assert.equal(await size(), 8 << 20);
    await lab().kubectl('delete', 'pod', 'raw-user');
    await lab().kubectl('delete', 'pvc', 'raw-local');
  });

  test('a file system that does not respond delays only pods that use the file system', LIMIT, async () => {
    const hung = await HungFileSystem.mount(join(lab().scratch, 'hung'));
    const names = Array.from({ length: 6 }, (_, at) => `hung-${at}`);
    const mount = { volumeMounts: [{ name: 'data', mountPath: '/data', subPath: 'below' }] };
    try {
      const volume = (at: number): object => ({
        path: join(hung.path, String(at)),
        ...(at % 2 === 0 ? { type: 'Directory' } : {}),
      });
      await lab().apply(
        ...names.map((name, at) =>
          pod(name, { volumes: [{ name: 'data', hostPath: volume(at) }], containers: [idle(mount)] } as object),
        ),
      );
      for (const name of names.slice(0, 2)) await lab().event(name, 'FailedMount', /did not answer within/, 40_000);
      await lab().apply(pod('beside-hung', { containers: [shell('echo runs; sleep 1000')] }));
      await lab().ready('beside-hung');
      assert.equal(await lab().logs('beside-hung'), 'runs\n');
      const ready = 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}';
      assert.equal(await lab().kubectl('get', 'nodes', '-o', ready), 'True');
      await lab().kubectl('delete', 'pod', 'beside-hung', ...names);
    } finally {
      await hung.release();
    }
  });

  test('grows a local directory with its claim', LIMIT, async () => {
    await lab().apply(
      claim('grown-local'),
      user('grown-user', 'grown-local', idle({ volumeMounts: [{ name: 'data', mountPath: '/data' }] })),
    );
    await lab().ready('grown-user');
    await grow('grown-local', '6Mi');
    await grown('grown-local', '6Mi');
    const conditions = await lab().kubectl('get', 'pvc', 'grown-local', '-o', 'jsonpath={.status.conditions}');
    assert.equal(conditions.trim(), '');
    await lab().kubectl('delete', 'pod', 'grown-user');
    await lab().kubectl('delete', 'pvc', 'grown-local');
  });

  test('mounts the files of an image read-only as an image volume', LIMIT, async () => {
    const container = shell('ls /image/bin/busybox && touch /image/x 2>/dev/null; echo touch=$?; sleep 1000', {
      volumeMounts: [{ name: 'files', mountPath: '/image' }],
    });
    const volumes = [{ name: 'files', image: { reference: helloImage, pullPolicy: 'IfNotPresent' } }];
    await lab().apply(pod('image-user', { volumes, containers: [container] } as object));
    await lab().ready('image-user');
    await eventually('the log', 10_000, async () =>
      (await lab().logs('image-user')).includes('touch=') ? true : undefined,
    );
    assert.match(await lab().logs('image-user'), /touch=1/);
    await lab().kubectl('delete', 'pod', 'image-user');
    const missing = [{ name: 'files', image: { reference: 'lab.invalid/none:1', pullPolicy: 'Never' } }];
    await lab().apply(pod('image-missing', { volumes: missing } as object));
    await lab().event('image-missing', 'FailedMount', /"files" : ErrImageNeverPull/);
    await lab().remove('image-missing');
  });

  test('propagates mounts of a privileged container to the kubelet', LIMIT, async () => {
    const path = join(lab().appliance.root, 'var/lib/kubelet/plugins');
    const mount = { name: 'plugins', mountPath: path, mountPropagation: 'Bidirectional' };
    const script = `mkdir -p ${path}/shared && mount -t tmpfs none ${path}/shared && touch ${path}/shared/seen && sleep 1000`;
    await lab().apply(
      pod('mounter', {
        volumes: [{ name: 'plugins', hostPath: { path, type: 'DirectoryOrCreate' } }],
        containers: [shell(script, { securityContext: { privileged: true }, volumeMounts: [mount] })],
      }),
    );
    await lab().ready('mounter');
    await eventually('the mount', 10_000, () =>
      stat(join(path, 'shared/seen')).then(
        () => true as const,
        () => undefined,
      ),
    );
    await lab().exec('mounter', 'umount', `${path}/shared`);
    await lab().kubectl('delete', 'pod', 'mounter');
  });

  test('names the missing tool of a network volume', LIMIT, async () => {
    const nfs = { server: '192.0.2.1', path: '/export' };
    const iscsi = { targetPortal: '192.0.2.1:3260', iqn: 'iqn.2001-04.com.example:storage', lun: 0 };
    await lab().apply(pod('nfs-user', { volumes: [{ name: 'data', nfs }] }));
    await lab().apply(pod('iscsi-user', { volumes: [{ name: 'data', iscsi }] }));
    await lab().event('nfs-user', 'FailedMount', /"data" : mount\.nfs: not installed on this node; install nfs-common/);
    await lab().event('iscsi-user', 'FailedMount', /"data" : iscsiadm: not installed on this node; install open-iscsi/);
    await lab().remove('nfs-user', 'iscsi-user');
    await lab().gone('nfs-user');
    await lab().gone('iscsi-user');
  });
}
