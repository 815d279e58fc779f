import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { after, test } from 'node:test';
import type { Node, Secret } from '../../../src/api/generated/core/v1.ts';
import { ApiError } from '../../../src/api/meta/status.ts';
import type { ApiClient } from '../../../src/client/index.ts';
import {
  adoptAuthorities,
  mastersBehind,
  publishAuthorities,
  sealingSecrets,
} from '../../../src/host/certificates/shared-authorities.ts';
import type { Settings } from '../../../src/host/config/settings.ts';
import { seal } from '../../../src/host/join/sealed-keys.ts';
import { ensureAuthority, trustedBundle } from '../../../src/pki/authorities.ts';
import { createAuthority, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { masterFiles, successorOf } from '../../../src/pki/index.ts';
import { rotateAuthority, rotateServiceAccountKeys } from '../../../src/pki/rotation.ts';
import { ensureServiceAccountKeys } from '../../../src/pki/service-account-keys.ts';
import { crashAt } from '../../support/crash-at.ts';

const directory = await mkdtemp(join(tmpdir(), 'authorities-'));
after(() => rm(directory, { recursive: true, force: true }));
const now = Date.now();

/** Settings of a master with an external store. */
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

test('distributes a CA rotation to other masters by phase; a master that missed all phases cannot decrypt the rotation', async () => {
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
  // An older Secret that was restored changes no file.
  const current = api.secret;
  api.secret = published[0];
  assert.equal(await adoptAuthorities(api.client, b), false);
  assert.equal(await caOf(b), await caOf(a));
  // The last phase is encrypted with a key that was trusted at that time; a phase of another rotation is not.
  api.secret = current;
  for (const phase of ['new-ca', 'reissue', 'finish'] as const) {
    const before = await sealingSecrets(a);
    await rotateAuthority(masterFiles(a.root).ca, { commonName: 'openshift-signer', phase, nowMs: now + 5_000 });
    await publishAuthorities(api.client, a, before, now + 10);
  }
  await assert.rejects(adoptAuthorities(api.client, late), { code: 'bad-authority' });
});

/** A master with all authorities and keys, one of them in the middle of a rotation. */
async function wholeMaster(name: string, from?: Settings): Promise<Settings> {
  const settings = master(name);
  const files = masterFiles(settings.root);
  await mkdir(files.directory, { recursive: true });
  if (from !== undefined) {
    await cp(masterFiles(from.root).directory, files.directory, { recursive: true });
    return settings;
  }
  await ensureAuthority(files.ca, 'openshift-signer', { nowMs: now });
  await ensureAuthority(files.frontProxyCa, 'openshift-aggregator-front-proxy', { nowMs: now });
  await ensureServiceAccountKeys(files, { nowMs: now });
  await rotateAuthority(files.ca, { commonName: 'openshift-signer', phase: 'new-ca', nowMs: now });
  await rotateServiceAccountKeys(files, 'new-ca');
  return settings;
}

const contents = async ({ root }: Settings): Promise<Record<string, string>> => {
  const { directory: path } = masterFiles(root);
  const names = (await readdir(path)).filter((each) => !each.startsWith('.') && each !== 'authorities.generation');
  return Object.fromEntries(
    await Promise.all(names.toSorted().map(async (each) => [each, await readFile(join(path, each), 'utf8')])),
  );
};

test('a master publishes no CAs while a file is unreadable or half of a key pair is missing', async () => {
  const whole = await wholeMaster('publisher');
  const { ca, frontProxyCa, serviceAccountsPrivateKey } = masterFiles(whole.root);
  const secrets = await sealingSecrets(whole);
  for (const path of [ca.key, ca.cert, frontProxyCa.key, serviceAccountsPrivateKey, successorOf(ca).cert]) {
    for (const damage of ['missing', 'unreadable']) {
      const damaged = await wholeMaster(`damaged-${damage}-${basename(path)}`, whole);
      const place = join(damaged.root, relative(whole.root, path));
      await rm(place);
      if (damage === 'unreadable') await mkdir(place);
      const api = cluster([]);
      await assert.rejects(publishAuthorities(api.client, damaged, secrets, now), (error: Error) => {
        assert.match(error.message, new RegExp(basename(place).replaceAll('.', '\\.')));
        return true;
      });
      assert.equal(api.secret, undefined);
    }
  }
  const unreadable = await wholeMaster('unreadable-successor', whole);
  const { key } = successorOf(masterFiles(unreadable.root).ca);
  await rm(key);
  await mkdir(key);
  await assert.rejects(sealingSecrets(unreadable), { code: 'unreadable' });
});

test('a rotation of shared CAs does not remove a key without a replacement', async () => {
  const whole = await wholeMaster('complete');
  const before = await contents(whole);
  const secrets = await sealingSecrets(whole);
  const api = cluster([]);
  const published = async (files: Record<string, string>): Promise<void> => {
    const payload = {
      files: { ...files, generation: String(now + 60_000) },
      members: undefined,
      storeToken: undefined,
    };
    const data = Object.fromEntries(secrets.map((secret) => [secret.id, seal(payload, secret).toString('base64')]));
    api.secret = { metadata: { annotations: {} }, data };
  };
  const names = (...kept: string[]): Record<string, string> =>
    Object.fromEntries(kept.map((each) => [`etc/origin/master/${each}`, before[each] ?? '']));
  for (const files of [{}, names('ca.crt'), names('ca.crt', 'front-proxy-ca.key')]) {
    await published(files);
    await assert.rejects(adoptAuthorities(api.client, whole), { code: 'bad-authority' });
    assert.deepEqual(await contents(whole), before);
  }
  await published({ ...names('ca.crt'), 'etc/origin/master/ca.key': before['front-proxy-ca.key'] ?? '' });
  await assert.rejects(
    adoptAuthorities(api.client, whole),
    /published authorities: .*ca\.crt: the key does not belong/,
  );
  assert.deepEqual(await contents(whole), before);
  await published(names('ca.crt', 'ca.key'));
  assert.equal(await adoptAuthorities(api.client, whole), true);
  const { 'ca.next.crt': _cert, 'ca.next.key': _key, ...rest } = before;
  assert.deepEqual(await contents(whole), rest);
});

test('a rotation phase of shared CAs is repeated after a crash at any of its steps', {
  timeout: 300_000,
}, async () => {
  const publisher = await wholeMaster('rotating');
  const follower = await wholeMaster('follower', publisher);
  const files = masterFiles(publisher.root);
  const api = cluster([]);
  const secrets = await sealingSecrets(publisher);
  await rotateAuthority(files.ca, { commonName: 'openshift-signer', phase: 'reissue', nowMs: now });
  await rotateServiceAccountKeys(files, 'reissue');
  await publishAuthorities(api.client, publisher, secrets, now);
  const shared = JSON.stringify(api.secret);
  const source = new URL('../../../src/host/certificates/shared-authorities.ts', import.meta.url).href;
  for (let step = 0; ; step += 1) {
    const copy = await wholeMaster(`follower-${step}`, follower);
    const killed = await crashAt(
      step,
      `const { adoptAuthorities } = await import(${JSON.stringify(source)});
      const secret = ${shared};
      const client = { resource: () => ({ get: async () => secret, patch: async () => {} }) };
      await adoptAuthorities(client, ${JSON.stringify(copy)});`,
    );
    const { ca } = masterFiles(copy.root);
    const known = [await trustedBundle(files.ca), await trustedBundle(masterFiles(follower.root).ca)].join('');
    const { certPem } = await ensureAuthority(ca, 'openshift-signer', { nowMs: now });
    assert.ok(known.includes(certPem), `step ${step}: the host starts with an authority that others trust`);
    await adoptAuthorities(api.client, copy);
    assert.deepEqual(await contents(copy), await contents(publisher), `step ${step}`);
    if (!killed) return;
  }
});
