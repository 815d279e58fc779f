/** What a CSI driver is called with, and what is undone after its errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1';
import { CsiContext } from '../../../src/components/kubelet/volumes/csi/context.ts';
import { CsiError } from '../../../src/components/kubelet/volumes/csi/port.ts';
import { CsiVolumes, type CsiVolumesOptions } from '../../../src/components/kubelet/volumes/csi/volumes.ts';
import type { CsiMount } from '../../../src/components/kubelet/volumes/records.ts';

const KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

async function published(serviceAccountTokenInSecrets?: boolean) {
  let call: { secrets: Record<string, string>; volumeContext: Record<string, string> } | undefined;
  const publish = async (given: typeof call): Promise<void> => {
    call = given;
  };
  const spec = { tokenRequests: [{ audience: 'vault' }], volumeLifecycleModes: ['Ephemeral'] };
  const driver = { name: 'd', capabilities: new Set(), node: { publish } };
  const path = (...parts: readonly string[]): string => parts.join('/');
  const volumes = new CsiVolumes({
    drivers: {
      get: () => driver,
      object: async () => ({ spec: { ...spec, attachRequired: false, serviceAccountTokenInSecrets } }),
    },
    records: { get: async () => undefined, put: async () => {} },
    directories: { volume: path, asDriversKnow: path },
    files: { makeDirectory: async () => {} },
    context: new CsiContext({ issued: async () => ({ token: 'ey', expiresAtMs: 0 }) }),
  } as unknown as CsiVolumesOptions);
  const pod: Pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [] } };
  await volumes.setUp({ pod, volume: { name: 'v', csi: { driver: 'd' } } });
  return call;
}

/** Names of the calls that undo a volume whose staging ended with this code. */
async function undone(code: string): Promise<string[]> {
  const calls: string[] = [];
  let record: CsiMount | undefined;
  const nothing = async (): Promise<void> => {};
  const node = {
    stage: () => Promise.reject(new CsiError(code, 'fake')),
    unpublish: async () => void calls.push('unpublish'),
    unstage: async () => void calls.push('unstage'),
  };
  const path = (...parts: readonly string[]): string => `/${parts.join('/')}`;
  const volumes = new CsiVolumes({
    drivers: {
      get: () => ({ name: 'd', capabilities: new Set(['STAGE_UNSTAGE_VOLUME']), node }),
      object: async () => ({ spec: { attachRequired: false } }),
    },
    records: {
      get: async () => undefined,
      all: async () => [],
      put: async (given: CsiMount) => {
        record = given;
      },
      remove: nothing,
    },
    directories: { volume: path, csiStaging: path, asDriversKnow: path },
    files: { makeDirectory: nothing, kindOf: async () => 'Directory' },
    tools: { unmount: nothing, removeEmptyDirectory: nothing },
    context: { secretOf: async () => ({}) },
  } as unknown as CsiVolumesOptions);
  const pod: Pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [] } };
  const persistent = { metadata: { name: 'pv' }, spec: { csi: { driver: 'd', volumeHandle: 'h' } } };
  await assert.rejects(volumes.setUp({ pod, volume: { name: 'v' }, persistent }), /MountVolume.MountDevice failed/);
  await volumes.tearDown(record as CsiMount);
  return calls;
}

test('a volume is unstaged unless the driver has ended its staging with an error', async () => {
  assert.deepEqual(await undone('InvalidArgument'), ['unpublish']);
  for (const code of ['DeadlineExceeded', 'Unavailable', 'Aborted', 'ResourceExhausted', 'Canceled']) {
    assert.deepEqual(await undone(code), ['unpublish', 'unstage']);
  }
});

test('tokens are volume context, and secrets only where the driver wants that', async () => {
  const tokens = '{"vault":{"token":"ey","expirationTimestamp":"1970-01-01T00:00:00Z"}}';
  for (const inSecrets of [undefined, false]) {
    const call = await published(inSecrets);
    assert.deepEqual([call?.secrets, call?.volumeContext[KEY]], [{}, tokens]);
  }
  const call = await published(true);
  assert.deepEqual([call?.secrets, call?.volumeContext], [{ [KEY]: tokens }, {}]);
});
