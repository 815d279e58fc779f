/** Mirror pods that the API rejects. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { ApiError } from '../../../src/api/meta/status.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ApiClient } from '../../../src/client/types.ts';
import { MirrorPods } from '../../../src/kubelet/sources/mirror-pods.ts';
import { eventually, realClock } from '../lab.ts';
import { MemoryApi } from '../memory-api.ts';

describe('mirror pods', () => {
  it('creates the other mirror pods when the API rejects one, and retries the rejected one', async () => {
    const api = new MemoryApi();
    const client = api.client();
    let isRejected = true;
    const rejecting: ApiClient = {
      ...client,
      resource: (type) => {
        const inner = client.resource(type);
        return {
          ...inner,
          create: (object, ...rest) => {
            if (isRejected && object.metadata?.name === 'one-node') throw new ApiError('Forbidden', 'no');
            return inner.create(object, ...rest);
          },
        };
      },
    };
    const pods = ['one', 'two'].map((name): Pod => {
      const metadata = { name: `${name}-node`, namespace: 'default', uid: name };
      return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } };
    });
    const mirrors = new MirrorPods({
      clock: realClock,
      log: silentLog,
      staticPods: () => pods,
      mirrors: () => [],
    });
    mirrors.connect(rejecting, { metadata: { name: 'node', uid: 'u' } });
    const exists = (name: string) => () => api.get(resources.pods, `default/${name}`);
    await eventually('the second mirror pod', exists('two-node'));
    assert.equal(exists('one-node')(), undefined);
    isRejected = false;
    await eventually('the first mirror pod', exists('one-node'));
    mirrors.stop();
  });
});
