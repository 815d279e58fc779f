/**
 * Adds a field of containers to a copy of the sources as CONTRIBUTING.md describes it: an entry of the table, and the
 * number of the CRI message's field. It then reaches the runtime specification and the CRI message.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';

type Kubelet = typeof import('../../../src/kubelet/pods/containers/container-config.ts');
type Spec = typeof import('../../../src/runtime/oci/spec/spec.ts');
type Configs = typeof import('../../../src/runtime/cri/configs.ts');
type Codec = typeof import('../../../src/runtime/cri/codec.ts');
type Messages = typeof import('../../../src/runtime/cri/messages.ts');

const ROOT = join(import.meta.dirname, '../../..');
const scratch = mkdtempSync(join(tmpdir(), 'hyperedge-field-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const UMASK = `
  umask: field({
    path: 'containers[].umask',
    since: '1.36',
    read: ({ container }): number | undefined => (container as { readonly umask?: number }).umask,
    oci: (umask) => ({ process: { user: { umask } } }),
    cri: (umask) => ({ umask }),
  }),
`;

const load = async <T>(file: string): Promise<T> => import(pathToFileURL(join(scratch, 'src', file)).href);

function edit(file: string, anchor: string, added: string): void {
  const path = join(scratch, 'src', file);
  const text = readFileSync(path, 'utf8');
  assert.ok(text.includes(anchor), file);
  writeFileSync(path, text.replace(anchor, `${anchor}${added}`));
}

test('a new pod field needs one table entry and the number of its CRI field', async () => {
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
  edit('api/podspec/fields/table.ts', 'export const CONTAINER_FIELDS = {', UMASK);
  edit('runtime/cri/messages.ts', 'const containerConfig = {', "\n  umask: one(99, 'int'),");

  const { containerConfig } = await load<Kubelet>('kubelet/pods/containers/container-config.ts');
  const container = { name: 'c', image: 'i', tty: true, umask: 0o27, command: ['sh'] };
  const config = containerConfig({
    pod: { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [container] } },
    container,
    attempt: 0,
    image: { id: 'sha256:1', repoTags: [], repoDigests: [], sizeBytes: 0 },
    env: [],
    mounts: [],
    devices: [],
    pidNamespaceOf: undefined,
    hostRoot: false,
    seccompDefault: false,
    seccompProfileRoot: '/s',
    logLimitBytes: 0,
    memoryCapacityBytes: 1,
    oomScoreFloor: 0,
    cpuCfsQuota: true,
  });

  const { buildSpec } = await load<Spec>('runtime/oci/spec/spec.ts');
  const { spec } = buildSpec({
    containerId: 'id',
    config,
    image: { entrypoint: [], cmd: [], env: [] },
    user: { uid: 7, gid: 7 },
    mounts: [],
    devices: [],
    namespaces: { pid: 'new' },
    rootPath: 'root',
    readOnlyRoot: false,
    driver: 'cgroupfs',
    sandbox: { cgroupParent: '/pods', hostname: 'h' },
    own: { capabilities: 0n, oomScoreAdj: 0, openFilesHard: 9e9 },
    pureV2: true,
    nodeArch: 'x64',
  } as unknown as Parameters<Spec['buildSpec']>[0]);
  const { process } = spec as { readonly process: Readonly<Record<string, unknown>> };
  assert.deepEqual(process['user'], { uid: 7, gid: 7, umask: 0o27 });
  assert.deepEqual([process['terminal'], process['cwd'], process['noNewPrivileges']], [true, '/', false]);

  const { containerDraft } = await load<Configs>('runtime/cri/configs.ts');
  const { decode, encode } = await load<Codec>('runtime/cri/codec.ts');
  const { createContainer } = await load<Messages>('runtime/cri/messages.ts');
  const sandbox = { portMappings: [], annotations: {}, labels: {}, sysctls: {} };
  const draft = containerDraft('sandbox', sandbox as never, config, { strictGroups: true });
  const sent = decode(createContainer, encode(createContainer, draft));
  const message = sent.config as unknown as Readonly<Record<string, unknown>>;
  assert.deepEqual([message['umask'], message['tty']], [0o27, true]);
});
