import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Header, pack } from 'tar-stream';
import {
  manifestText,
  parseManifest,
  type ReleaseManifest,
  releaseFileName,
  storeLevelOf,
} from '../../../../src/api/releases/manifest.ts';
import { DigestStore, digestOf, readBundle, writeBundle } from '../../../../src/openshift/updates/io/index.ts';
import { createVerifier, parseTrustedKey, signatureOf } from '../../../../src/openshift/updates/io/keys.ts';
import { sha256Hex } from '../../../../src/wire/digest.ts';
import { generator } from '../../../support/random.ts';

let root = '';
let key: KeyObject;
let trusted: KeyObject;
let good = '';
let manifest: ReleaseManifest;
const content = Buffer.alloc(300_000, 'executable');
const name = releaseFileName('x64');

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'he-bundle-'));
  const pair = generateKeyPairSync('ed25519');
  key = pair.privateKey;
  trusted = pair.publicKey;
  const source = join(root, 'executable');
  await writeFile(source, content);
  const file = { name, architecture: 'x64', size: content.length, sha256: await digestOf(source) } as const;
  manifest = { version: '1.2.3', kubernetes: 'v1.36.0+hyperedge1', channels: ['stable'], files: [file] };
  good = join(root, 'good');
  await writeBundle(good, manifest, new Map([[name, source]]), key);
});
after(() => rm(root, { recursive: true, force: true }));

interface Member extends Partial<Header> {
  readonly name: string;
  readonly content?: Buffer | string;
}

async function tar(...members: readonly Member[]): Promise<string> {
  const stream = pack();
  for (const { content: body = '', ...header } of members) stream.entry(header, body);
  stream.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const path = join(root, 'given');
  await writeFile(path, Buffer.concat(chunks));
  return path;
}

const signed = (text: string, by = key): Member[] => [
  { name: 'manifest.json', content: text },
  { name: 'manifest.json.sig', content: signatureOf(text, by) },
];

/** The one-line rejection of a bundle, after which the store must be empty. */
async function refusal(path: string, keys: readonly KeyObject[] = [trusted]): Promise<string> {
  const directory = await mkdtemp(join(root, 'store-'));
  const store = new DigestStore(directory);
  const error = await readBundle(
    path,
    keys,
    async () => {},
    async (file, bytes) => {
      await store.add(file, bytes);
    },
  ).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Error, 'it is refused');
  assert.ok(error.message.startsWith(path), error.message);
  assert.doesNotMatch(error.message, /\n/);
  assert.deepEqual(await readdir(directory), []);
  return error.message.slice(path.length + 2);
}

test('a written release bundle is read back with the same manifest and files', async () => {
  const received: Buffer[] = [];
  let accepted = 0;
  const read = await readBundle(
    good,
    [trusted],
    async () => void accepted++,
    async (_, bytes) => {
      for await (const chunk of bytes) received.push(Buffer.from(chunk));
    },
  );
  assert.deepEqual(read.manifest, manifest);
  assert.equal(read.digest, sha256Hex(manifestText(manifest)));
  assert.equal(accepted, 1);
  assert.ok(Buffer.concat(received).equals(content));
});

test('reads the store level of a release from its manifest, with level 2 as the default', () => {
  assert.ok(!manifestText(manifest).includes('storeLevel'), 'a manifest of a former release keeps its text');
  const read = parseManifest(manifestText({ ...manifest, storeLevel: 5 }));
  assert.ok(typeof read !== 'string', String(read));
  assert.deepEqual([storeLevelOf(read), storeLevelOf(manifest), storeLevelOf(undefined)], [5, 2, 2]);
  for (const storeLevel of [0, 1.5, 1001])
    assert.equal(parseManifest(manifestText({ ...manifest, storeLevel })), 'storeLevel: must be from 1 to 1000');
});

test('names the command for an offline bundle', () => {
  const offline = manifestText(manifest).replace('ReleaseBundle', 'OfflineBundle');
  assert.match(String(parseManifest(offline)), /this is an offline bundle; verify it with hyperedge version --check/);
});

test('rejects a manifest that was changed or signed with another key before any file is stored', async () => {
  const other = generateKeyPairSync('ed25519');
  assert.match(await refusal(good, [other.publicKey]), /no trusted key has signed the manifest/);
  assert.match(
    await refusal(good, []),
    /no key is trusted; create the config map release-keys .*, or set updates\.keys/,
  );
  const text = manifestText(manifest);
  const forged = [{ name: 'manifest.json', content: text.replace('1.2.3', '1.2.4') }, ...signed(text).slice(1)];
  assert.match(await refusal(await tar(...forged, { name, content })), /no trusted key/);
  const unsigned = [
    { name: 'manifest.json', content: text },
    { name, content },
  ];
  assert.match(await refusal(await tar(...unsigned)), /is where manifest\.json\.sig must be/);
});

test('rejects bundles with paths outside of the directory, links, or files that are not in the manifest', async () => {
  const text = manifestText(manifest);
  for (const path of ['../../etc/cron.d/x', '/etc/shadow', `./${name}`, 'hyperedge-linux-arm64', `${name}\u001b[2J`])
    assert.match(await refusal(await tar(...signed(text), { name: path, content })), /is not the next one/, path);
  const link = { name, type: 'symlink', linkname: '/etc/shadow' } as const;
  assert.match(await refusal(await tar(...signed(text), link)), /is a symlink; only files may be there/);
  assert.match(
    await refusal(await tar({ name: '../manifest.json', content: text })),
    /is where manifest\.json must be/,
  );
  const twice = await tar(...signed(text), { name, content }, { name, content });
  const directory = await mkdtemp(join(root, 'twice-'));
  const store = new DigestStore(directory);
  const take = async (file: Parameters<typeof store.add>[0], bytes: AsyncIterable<Uint8Array>): Promise<void> =>
    void (await store.add(file, bytes));
  await assert.rejects(
    readBundle(twice, [trusted], async () => {}, take),
    /is not the next one/,
  );
  for (const bad of ['../x', 'hyperedge-linux-x64/..', ''])
    assert.match(await refusal(await tar(...signed(text.replace(name, bad)))), /files\[0\]\.name: must be/);
});

test('rejects and deletes a file whose content differs from the manifest', async () => {
  const text = manifestText(manifest);
  const changed = Buffer.from(content);
  changed[77] = 0;
  assert.match(
    await refusal(await tar(...signed(text), { name, content: changed })),
    /does not have its announced SHA-256/,
  );
  assert.match(await refusal(await tar(...signed(text), { name, content: content.subarray(1) })), /has 299999 bytes/);
  assert.match(await refusal(await tar(...signed(text))), /the file ends before hyperedge-linux-x64/);
});

test('rejects a bundle truncated at any byte and files that are not bundles, with a one-line error', async () => {
  const { size } = await stat(good);
  const random = generator(4);
  const path = join(root, 'cut');
  // A tar ends with 1,024 zero bytes, which may be missing.
  for (const length of [
    0,
    1,
    511,
    512,
    1500,
    ...Array.from({ length: 20 }, () => Math.floor(random() * (size - 4_096))),
  ]) {
    await writeFile(path, await readFile(good));
    await truncate(path, length);
    assert.notEqual(await refusal(path), '', String(length));
  }
  await writeFile(path, Buffer.alloc(100_000, 'x'));
  await refusal(path);
  assert.match(await refusal(root), /the path is not a file/);
});

test('rejects a release bundle with a size above the limit', async () => {
  const path = join(root, 'huge');
  await writeFile(path, '');
  await truncate(path, 1.5 * 2 ** 30);
  assert.match(await refusal(path), /the file is larger than/);
  const files = manifest.files.map((file) => ({ ...file, size: 2 ** 40 }));
  assert.match(
    await refusal(await tar(...signed(manifestText({ ...manifest, files })))),
    /files\[0\]\.size: must be from/,
  );
  assert.match(
    await refusal(await tar({ name: 'manifest.json', content: Buffer.alloc(70_000, ' ') })),
    /larger than 65536/,
  );
});

test('rejects each of 500 damaged bundles or reads its original content', async () => {
  const bytes = await readFile(good);
  const random = generator(9);
  const path = join(root, 'damaged');
  for (let round = 0; round < 500; round++) {
    const damaged = Buffer.from(bytes);
    for (let each = 0; each < 3; each++) damaged[Math.floor(random() * 2_000)] = Math.floor(random() * 256);
    await writeFile(path, damaged);
    const received = async (
      file: { sha256: string; size: number },
      content_: AsyncIterable<Uint8Array>,
    ): Promise<void> => {
      let length = 0;
      for await (const chunk of content_) length += chunk.length;
      assert.equal(length, file.size);
    };
    const read = await readBundle(path, [trusted], async () => {}, received).catch((error: unknown) => error);
    if (read instanceof Error) assert.equal(read.message.split('\n').length, 1);
    else assert.deepEqual((read as { manifest: ReleaseManifest }).manifest, manifest);
  }
});

test('accepts release keys in PEM format or as raw bytes and rejects others', () => {
  const pem = trusted.export({ type: 'spki', format: 'pem' }).toString();
  const raw = trusted.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64');
  assert.ok(parseTrustedKey(pem).equals(trusted));
  assert.ok(parseTrustedKey(raw).equals(trusted));
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' });
  assert.throws(() => parseTrustedKey(rsa.toString()), /Ed25519 public key in PEM: the key is of type rsa/);
  assert.throws(() => parseTrustedKey('nonsense'), /Ed25519/);
});

test('rejects a release announcement with another version in its name, or signed with a key that is no longer trusted', () => {
  let keys: readonly KeyObject[] = [trusted];
  const verify = createVerifier(() => keys);
  const text = manifestText(manifest);
  const announcement = { name: 'release-1.2.3', text, signature: signatureOf(text, key) };
  assert.ok('manifest' in verify(announcement));
  assert.deepEqual(verify({ ...announcement, name: 'release-9.9.9' }), { problem: 'the manifest is of 1.2.3' });
  keys = [];
  assert.ok('problem' in verify(announcement));
});

test('the file store names files by digest, treats a damaged file as missing and deletes unknown files', async () => {
  const directory = await mkdtemp(join(root, 'files-'));
  const source = join(root, 'executable');
  const [file] = manifest.files;
  assert.ok(file);
  const path = await new DigestStore(directory).add(file, createReadStream(source));
  assert.equal(await new DigestStore(directory).pathOf(file.sha256), path);
  await symlink('/etc/passwd', join(directory, 'x'));
  assert.equal(await new DigestStore(directory).pathOf('x'), undefined);
  assert.equal(await new DigestStore(directory).pathOf('../files'), undefined);
  await truncate(path, 10);
  assert.equal(await new DigestStore(directory).pathOf(file.sha256), undefined);
  const store = new DigestStore(directory);
  await store.add(file, createReadStream(source));
  const writtenMs = (await stat(path)).mtimeMs;
  await store.retain([file.sha256], new Set([file.sha256]), writtenMs + 1);
  // A file that was never announced may belong to an import in progress.
  await store.retain([], new Set(), writtenMs);
  assert.deepEqual((await readdir(directory)).sort(), [file.sha256, 'x'].sort());
  await store.retain([], new Set(), writtenMs + 1);
  assert.deepEqual(await readdir(directory), ['x']);
  await store.add(file, createReadStream(source));
  await store.retain([], new Set([file.sha256]), 0);
  assert.deepEqual(await readdir(directory), ['x']);
  await assert.rejects(store.add({ ...file, size: 2 ** 50 }, createReadStream(source)), /MB are free/);
});
