import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import type { Node, Secret } from 'kubernetes-types/core/v1';
import { ApiError } from '../../../src/api/meta/status.ts';
import type { ApiClient } from '../../../src/client/index.ts';
import { createAuthority, lifetimeFrom } from '../../../src/io/pki/certificate.ts';
import { masterFiles } from '../../../src/io/pki/index.ts';
import { rotateAuthority } from '../../../src/io/pki/rotation.ts';
import type { Settings } from '../../../src/roles/config/settings.ts';
import {
  adoptAuthorities,
  mastersBehind,
  publishAuthorities,
  sealingSecrets,
} from '../../../src/roles/host/shared-authorities.ts';

const directory = await mkdtemp(join(tmpdir(), 'authorities-'));
after(() => rm(directory, { recursive: true, force: true }));
const now = Date.now();

/** Of a master whose store is an external one. */
function master(nodeName: string): Settings {
  const root = join(directory, nodeName);
  const paths = { encryptionConfig: join(root, 'encryption'), gossipKeyring: join(root, 'keyring') };
  return { root, nodeName, paths, storage: { endpoints: [] } } as unknown as Settings;
}

function cluster(nodes: readonly string[]): { readonly client: ApiClient; secret: Secret | undefined } {
  const state: { readonly client: ApiClient; secret: Secret | undefined } = {
    secret: undefined,
    client: {
      resource: () => ({
        get: async () => {
          if (state.secret === undefined) throw new ApiError('NotFound', 'not found');
          return structuredClone(state.secret);
        },
        create: async (object: Secret) => {
          state.secret = object;
        },
        update: async (object: Secret) => {
          state.secret = object;
        },
        patch: async (_name: string, _namespace: string, _type: string, { metadata }: Secret) => {
          Object.assign(state.secret?.metadata?.annotations ?? {}, metadata?.annotations);
        },
        list: async () => ({ items: nodes.map((name): Node => ({ metadata: { name } })) }),
      }),
    } as unknown as ApiClient,
  };
  return state;
}

test('a rotation reaches the other masters phase by phase; one that misses all of it cannot open it', async () => {
  const [a, b, late] = [master('a'), master('b'), master('late')];
  const authority = await createAuthority('openshift-signer@1', lifetimeFrom(now, 1));
  for (const { root } of [a, b, late]) {
    const { ca } = masterFiles(root);
    await mkdir(dirname(ca.key), { recursive: true });
    await writeFile(ca.cert, authority.certPem);
    await writeFile(ca.key, authority.keyPem, { mode: 0o600 });
  }
  const api = cluster(['a', 'b']);
  const caOf = async ({ root }: Settings): Promise<string> => readFile(masterFiles(root).ca.cert, 'utf8');
  const published: Secret[] = [];
  for (const [index, phase] of (['new-ca', 'reissue', 'finish'] as const).entries()) {
    assert.deepEqual(await mastersBehind(api.client, 'a'), []);
    const before = await sealingSecrets(a);
    await rotateAuthority(masterFiles(a.root).ca, { commonName: 'openshift-signer', phase, nowMs: now });
    const added = (await sealingSecrets(a)).filter(({ id }) => before.every((each) => each.id !== id));
    await publishAuthorities(api.client, a, [...before, ...added], now + index);
    published.push(structuredClone(api.secret) as Secret);
    assert.equal(JSON.stringify(api.secret).includes('PRIVATE KEY'), false);
    assert.deepEqual(await mastersBehind(api.client, 'a'), ['b']);
    assert.equal(await adoptAuthorities(api.client, b), true);
    assert.equal(await adoptAuthorities(api.client, b), false);
    assert.equal(await caOf(b), await caOf(a));
    assert.deepEqual(
      (await sealingSecrets(b)).map(({ id }) => id),
      (await sealingSecrets(a)).map(({ id }) => id),
    );
  }
  assert.notEqual(await caOf(b), authority.certPem);
  // A Secret of the past that was put back changes nothing.
  const current = api.secret;
  api.secret = published[0];
  assert.equal(await adoptAuthorities(api.client, b), false);
  assert.equal(await caOf(b), await caOf(a));
  // The last phase is sealed with the key that was still trusted then; one more rotation's is not.
  api.secret = current;
  for (const phase of ['new-ca', 'reissue', 'finish'] as const) {
    const before = await sealingSecrets(a);
    await rotateAuthority(masterFiles(a.root).ca, { commonName: 'openshift-signer', phase, nowMs: now + 5_000 });
    await publishAuthorities(api.client, a, before, now + 10);
  }
  await assert.rejects(adoptAuthorities(api.client, late), { code: 'bad-authority' });
});
