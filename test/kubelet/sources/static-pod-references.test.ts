/** Static pods that refer to objects of the API. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { decodeStaticPod } from '../../../src/kubelet/sources/static-pod.ts';

const context = { origin: '/manifests/p.json', kind: 'file', nodeName: toNodeName('node'), nowMs: 0 } as const;

function decode(spec: object): Pod | undefined {
  const containers = [{ name: 'main', image: 'registry.example.com/app:1' }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers, ...spec } };
  return decodeStaticPod(JSON.stringify(pod), context);
}

const volume = (source: object): object => ({ volumes: [{ name: 'v', ...source }] });
const secretRef = { name: 's' };

describe('static pods with references to the API', () => {
  const references: Record<string, object> = {
    'a service account': { serviceAccountName: 'default' },
    'a pull secret': { imagePullSecrets: [secretRef] },
    'a resource claim': { resourceClaims: [{ name: 'c', resourceClaimName: 'x' }] },
    'a secret of an iSCSI volume': volume({ iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.a', lun: 0, secretRef } }),
    'a secret of a file share': volume({ azureFile: { secretName: 's', shareName: 's' } }),
    'a CSI volume': volume({ csi: { driver: 'csi.example.com' } }),
    'a trust bundle': volume({ projected: { sources: [{ clusterTrustBundle: { name: 'b', path: 'p' } }] } }),
    'a secret in a variable': {
      containers: [
        { name: 'a', image: 'b', env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
      ],
    },
  };
  for (const [what, spec] of Object.entries(references))
    it(`rejects a static pod with ${what}`, () => {
      assert.throws(() => decode(spec), /a static pod may not reference /);
    });

  it('accepts a static pod without references', () => {
    assert.equal(decode(volume({ emptyDir: {} }))?.metadata?.name, 'p-node');
  });
});
