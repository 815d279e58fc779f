/** Number of access tokens that the store keeps for one user. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoginObjects } from '../../../../src/apiserver/server/login-port.ts';
import { systemRandom } from '../../../../src/host/process/process.ts';
import { TokenIssuer } from '../../../../src/openshift/oauth/authorization/tokens.ts';

test('deletes the oldest access tokens of a user with more than 1,000 tokens, and no tokens of other users', async () => {
  const kept = new Map<string, { readonly metadata: { readonly name: string }; readonly userName: string }>();
  let count = 0;
  const objects = {
    tokenName: (secret: string) => secret,
    list: () => [...kept.values()],
    create: async (_: string, object: { metadata: { name: string }; userName: string }) => {
      const creationTimestamp = new Date(count++ * 1000).toISOString();
      kept.set(object.metadata.name, { ...object, metadata: { ...object.metadata, creationTimestamp } } as never);
    },
    remove: async (_: string, name: string) => kept.delete(name),
  } as unknown as LoginObjects;
  const issuer = new TokenIssuer(objects, systemRandom, () => ({}));
  const issue = async (name: string): Promise<string> =>
    (await issuer.issueToken({ client: {}, user: { name, uid: name }, scopes: [], redirect: '' })).token;
  const other = await issue('other');
  const first = await issue('dev');
  for (let i = 0; i < 999; i++) await issue('dev');
  assert.deepEqual([kept.size, kept.has(first)], [1_001, true]);
  const newest = await issue('dev');
  assert.deepEqual([kept.size, kept.has(first), kept.has(other), kept.has(newest)], [1_001, false, true, true]);
});
