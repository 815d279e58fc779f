import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Mutation } from '../../../../src/apiserver/admission/admission.ts';
import { serviceAccount } from '../../../../src/apiserver/admission/pods/service-account.ts';
import type { AdmissionRequest } from '../../../../src/apiserver/pipeline/admission.ts';
import type { CachedObject } from '../../../../src/apiserver/watch-cache/cached-object.ts';

/** Admits a pod on a clock whose timers fire at once; the account appears after some milliseconds. */
async function admit(account: string | undefined, appearsMs: number): Promise<number> {
  let ms = 0;
  const found = { shared: () => ({ metadata: { name: account ?? 'default' } }) } as unknown as CachedObject;
  const plugin = serviceAccount({
    accounts: () => (ms >= appearsMs ? found : undefined),
    clock: {
      nowMs: () => ms,
      monotonicMs: () => ms,
      setTimer: (delayMs, callback) => {
        ms += delayMs;
        queueMicrotask(callback);
        return { cancel: () => {} };
      },
    },
    randomSuffix: () => 'abcde',
  });
  const spec = { containers: [{ name: 'a' }], ...(account === undefined ? {} : { serviceAccountName: account }) };
  const request = {
    operation: 'CREATE',
    kind: { definition: { group: '' }, plural: 'pods' },
    subresource: '',
    namespace: 'new',
    name: 'a',
    object: { metadata: { name: 'a' }, spec },
  } as unknown as AdmissionRequest;
  await plugin.mutate?.(request, new Mutation());
  return ms;
}

test('admission of a pod waits for the default service account of a new namespace', async () => {
  assert.equal(await admit(undefined, 0), 0);
  assert.equal(await admit(undefined, 2_500), 2_500);
  await assert.rejects(admit(undefined, 60_000), /error looking up service account new\/default: .* not found/);
});

test('admission of a pod waits at most one second for a service account that a client must create', async () => {
  assert.equal(await admit('robot', 900), 900);
  await assert.rejects(admit('robot', 2_500), /error looking up service account new\/robot: .* not found/);
});
