/** Device claims of pods while the informer of claims is behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceClaim } from '../../../../src/api/devices/types.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import type { ResourceType } from '../../../../src/api/meta/object.ts';
import { resources } from '../../../../src/api/resources.ts';
import type { ChangeHandler, Reconcile } from '../../../../src/client/types.ts';
import type { ControllerHandle, RunScope } from '../../../../src/controllers/framework/framework.ts';
import { resourceClaimController } from '../../../../src/controllers/nodes/resource-claim/controller.ts';

const pod = {
  metadata: { name: 'one', namespace: 'default', uid: 'pod-uid' },
  spec: { containers: [], resourceClaims: [{ name: 'board', resourceClaimTemplateName: 'boards' }] },
} as Pod;
const template = { metadata: { name: 'boards', namespace: 'default' }, spec: { spec: { devices: {} } } };

test('creates one claim for a pod even if the informer has not received the claim and the pod status yet', async () => {
  const made: ResourceClaim[] = [];
  const handlers = new Map<unknown, ChangeHandler<ResourceClaim>>();
  const informerOf = (get: (key: string) => unknown) => ({ get, list: () => [] });
  const informers = new Map<ResourceType, unknown>([
    [resources.pods, informerOf(() => pod)],
    [resources.resourceClaims, informerOf(() => undefined)],
    [resources.resourceClaimTemplates, informerOf(() => template)],
  ]);
  const writer = {
    create: async (claim: ResourceClaim): Promise<ResourceClaim> => {
      const number = made.length + 1;
      made.push({ ...claim, metadata: { ...claim.metadata, name: `one-board-${number}`, uid: `claim-${number}` } });
      return made.at(-1) ?? claim;
    },
    patch: async () => pod,
  };
  const handle = {
    informer: (type: ResourceType) => informers.get(type),
    writer: () => writer,
    recorder: { event: () => undefined },
  } as unknown as ControllerHandle;
  let reconcile: Reconcile = async () => undefined;
  const scope = {
    queue: (given: Reconcile) => {
      reconcile = given;
      return { add: () => undefined };
    },
    onChange: (informer: unknown, handler: ChangeHandler<ResourceClaim>) => handlers.set(informer, handler),
  } as unknown as RunScope;
  await resourceClaimController.prepare(handle)(scope);
  await reconcile('pod:default/one');
  await reconcile('pod:default/one');
  assert.deepEqual(
    made.map(({ metadata }) => metadata?.name),
    ['one-board-1'],
  );

  // A claim that was deleted is created again.
  const [claim] = made;
  assert.ok(claim !== undefined);
  handlers.get(informers.get(resources.resourceClaims))?.deleted?.(claim);
  await reconcile('pod:default/one');
  assert.equal(made.length, 2);
});
