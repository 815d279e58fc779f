/**
 * Adds a volume type to a copy of the kubelet as CONTRIBUTING.md describes it: one file and an entry in the table. The
 * API server accepts the source already, because it has all types of Kubernetes.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Container, Pod } from '../../../src/api/generated/core/v1.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { typeOf } from '../../../src/kubelet/volumes/types/index.ts';

type Manager = typeof import('../../../src/kubelet/volumes/manager.ts');
type StaticPods = typeof import('../../../src/kubelet/sources/static-pod.ts');

const ROOT = join(import.meta.dirname, '../../..');
const scratch = mkdtempSync(join(tmpdir(), 'hyperedge-volume-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const GIT_REPO = `
import type { DirectType } from './type.ts';

export const gitRepo: DirectType = {
  way: 'direct',
  source: 'gitRepo',
  isReadOnly: () => true,
  apiObject: () => 'a repository',
  create: ({ directories, files }) => ({
    pathOf: (pod, { name }) => directories.volume(pod.metadata?.uid ?? '', 'git-repo', name),
    async setUp(pod, volume) {
      await files.makeDirectory(this.pathOf(pod, volume) + '/' + volume.gitRepo?.directory);
    },
  }),
};
`;

const load = async <T>(file: string): Promise<T> => import(pathToFileURL(join(scratch, 'src', file)).href);

const pod: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: {
    containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
    volumes: [{ name: 'v', gitRepo: { repository: 'r', directory: 'd' } }],
  },
};

test('a new volume type needs one file and one table entry', async () => {
  assert.equal(typeOf({ name: 'v', gitRepo: { repository: 'r' } }), undefined, 'the type is new');
  const rooms = [
    'api',
    'base',
    'client',
    'controllers/framework',
    'kubelet',
    'network',
    'openshift',
    'rigs',
    'runtime',
  ];
  for (const room of [...rooms, 'wire'])
    cpSync(join(ROOT, 'src', room), join(scratch, 'src', room), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(scratch, 'node_modules'));
  writeFileSync(join(scratch, 'package.json'), '{"type":"module"}');
  const types = join(scratch, 'src/kubelet/volumes/types');
  writeFileSync(join(types, 'git-repo.ts'), GIT_REPO);
  const table = readFileSync(join(types, 'index.ts'), 'utf8');
  const added = table
    .replace('import { hostPath }', "import { gitRepo } from './git-repo.ts';\nimport { hostPath }")
    .replace('  emptyDir,\n', '  emptyDir,\n  gitRepo,\n');
  assert.equal(added.split('\n').length, table.split('\n').length + 2);
  writeFileSync(join(types, 'index.ts'), added);

  const { VolumeManager } = await load<Manager>('kubelet/volumes/manager.ts');
  const made: string[] = [];
  const manager = new VolumeManager({
    directories: { volume: (...parts: string[]) => `/${parts.join('/')}` },
    files: { makeDirectory: async (path: string) => made.push(path) },
    plugins: { records: { known: () => undefined } },
    features: { recursiveReadOnlyMounts: false, selinux: false },
  } as unknown as ConstructorParameters<Manager['VolumeManager']>[0]);
  await manager.setUp(pod, { podIps: [], hostIps: [] });
  assert.deepEqual(made, ['/u/git-repo/v/d']);
  assert.equal(manager.areImmediate(pod), true);
  const [container] = pod.spec?.containers ?? [];
  assert.deepEqual(await manager.mountsOf(pod, container as Container, []), [
    { hostPath: '/u/git-repo/v', containerPath: '/v', readOnly: true, propagation: 'private' },
  ]);

  const { decodeStaticPod } = await load<StaticPods>('kubelet/sources/static-pod.ts');
  const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...pod, metadata: { name: 'p' } });
  const context = { origin: '/manifests/p.json', kind: 'file', nodeName: toNodeName('node'), nowMs: 0 } as const;
  assert.throws(() => decodeStaticPod(manifest, context), /may not reference a repository/);
});
