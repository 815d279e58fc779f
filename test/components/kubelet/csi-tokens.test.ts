/** Where a CSI driver gets the tokens that it requests (KEP-1855, KEP-5538). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1';
import { CsiContext } from '../../../src/components/kubelet/volumes/csi/context.ts';
import { CsiVolumes, type CsiVolumesOptions } from '../../../src/components/kubelet/volumes/csi/volumes.ts';

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

test('tokens are volume context, and secrets only where the driver wants that', async () => {
  const tokens = '{"vault":{"token":"ey","expirationTimestamp":"1970-01-01T00:00:00Z"}}';
  for (const inSecrets of [undefined, false]) {
    const call = await published(inSecrets);
    assert.deepEqual([call?.secrets, call?.volumeContext[KEY]], [{}, tokens]);
  }
  const call = await published(true);
  assert.deepEqual([call?.secrets, call?.volumeContext], [{ [KEY]: tokens }, {}]);
});
