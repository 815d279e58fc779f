import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reviewAccess, reviewToken } from '../../src/client/reviews.ts';
import type { ApiClient } from '../../src/client/types.ts';

const SCOPES = { 'scopes.authorization.openshift.io': ['user:info'] };
const PATH = { nonResourceAttributes: { path: '/config/worker', verb: 'get' } };

/** A client that answers reviews and records the requests. */
function answering(status: object) {
  const sent: unknown[] = [];
  const request = async (_method: string, path: string, body: unknown) => {
    sent.push([path, (body as { spec: unknown }).spec]);
    return { status };
  };
  return { client: { request } as unknown as ApiClient, sent };
}

test('returns name, UID, groups and extra of a token from a TokenReview', async () => {
  const user = { username: 'dev', uid: '7', groups: ['system:authenticated'], extra: SCOPES };
  const { client } = answering({ authenticated: true, user });
  const identity = await reviewToken(client, 't');
  assert.deepEqual(identity, { name: 'dev', uid: '7', groups: ['system:authenticated'], extra: SCOPES });
  assert.equal(await reviewToken(answering({ authenticated: false, user }).client, 't'), undefined);
  assert.equal(await reviewToken(answering({ authenticated: true, user: {} }).client, 't'), undefined);
  assert.equal(await reviewToken(answering({}).client, 't'), undefined);
});

test('sends UID, groups and extra of the user in an access review', async () => {
  const { client, sent } = answering({ allowed: true });
  assert.equal(await reviewAccess(client, { name: 'dev', uid: '7', groups: ['g'], extra: SCOPES }, PATH), true);
  assert.deepEqual(sent, [
    [
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      { user: 'dev', uid: '7', groups: ['g'], extra: SCOPES, ...PATH },
    ],
  ]);
  assert.equal(await reviewAccess(answering({}).client, { name: 'dev', groups: [] }, PATH), false);
});
