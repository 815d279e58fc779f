import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pack } from 'tar-stream';
import { offlineText, parseOfflineManifest } from '../../../src/api/releases/offline.ts';
import {
  createOffline,
  isOfflineBundle,
  type OfflineOptions,
  readOffline,
} from '../../../src/host/install/offline-bundle.ts';
import { compareBundle } from '../../../src/host/openshift/release-bundles.ts';
import { DigestStore, signatureOf } from '../../../src/openshift/updates/io/index.ts';
import { sha256Hex } from '../../../src/wire/digest.ts';

const DIGEST = 'a'.repeat(64);
const JOIN = { server: 'https://192.0.2.1:8443', token: 'abcdef.0123456789abcdef', caHash: `sha256:${DIGEST}` };

/** Header of an ELF file for a machine, then text. */
function elf(machine: number): Buffer {
  const header = Buffer.alloc(64);
  header.write('\u007fELF', 'latin1');
  header.writeUInt16LE(machine, 18);
  return Buffer.concat([header, Buffer.alloc(200_000, 'program')]);
}

describe('offline bundle', () => {
  let work = '';
  let key: KeyObject;
  let trusted: KeyObject;
  let options: OfflineOptions;

  before(async () => {
    work = await mkdtemp(join(tmpdir(), 'he-offline-'));
    const pair = generateKeyPairSync('ed25519');
    key = pair.privateKey;
    trusted = pair.publicKey;
    const files = {
      x64: elf(62),
      arm64: elf(183),
      'h_1_amd64.deb': 'deb',
      'app.tar': 'image',
      '10-app.yaml': 'a: 1\n',
    };
    for (const [name, content] of Object.entries(files)) await writeFile(at(name), content);
    await writeFile(at('key.pub'), trusted.export({ type: 'spki', format: 'pem' }));
    options = {
      bundle: at('good'),
      version: '1.2.3',
      key,
      join: JOIN,
      executables: new Map([
        ['x64', at('x64')],
        ['arm64', at('arm64')],
      ]),
      packages: [at('h_1_amd64.deb')],
      images: [at('app.tar')],
      manifests: [at('10-app.yaml')],
    };
    await createOffline(options);
  });
  after(() => rm(work, { recursive: true, force: true }));

  const at = (name: string): string => join(work, name);

  /** Stores images and manifests of the bundle; returns the names, or the one-line error after which nothing is stored. */
  async function stored(path: string, keys: readonly KeyObject[] = [trusted]): Promise<string[] | string> {
    const directory = await mkdtemp(at('store-'));
    const store = new DigestStore(directory);
    const names: string[] = [];
    try {
      await readOffline(path, keys, {
        wants: ({ role }) => role === 'image' || role === 'manifest',
        prepare: async () => {},
        add: async (file, content) => {
          await store.add(file, content);
          names.push(file.name);
        },
      });
      return names;
    } catch (error) {
      assert.ok(error instanceof Error);
      assert.doesNotMatch(error.message, /\n/);
      return error.message.replace(`${path}: `, '');
    }
  }

  async function tar(text: string, ...members: readonly (readonly [string, Buffer | string])[]): Promise<string> {
    const stream = pack();
    stream.entry({ name: 'manifest.json' }, text);
    stream.entry({ name: 'manifest.json.sig' }, signatureOf(text, key));
    for (const [name, content] of members) stream.entry({ name }, content);
    stream.finalize();
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    await writeFile(at('given'), Buffer.concat(chunks));
    return at('given');
  }

  test('offline bundle contains executables, packages, images, manifests and join parameters', async () => {
    const { manifest } = await readOffline(at('good'), [trusted], undefined);
    assert.deepEqual(
      manifest.files.map(({ role, name, architecture }) => [role, name, architecture]),
      [
        ['executable', 'hyperedge-linux-x64', 'x64'],
        ['executable', 'hyperedge-linux-arm64', 'arm64'],
        ['package', 'h_1_amd64.deb', 'x64'],
        ['image', 'app.tar', undefined],
        ['manifest', '10-app.yaml', undefined],
      ],
    );
    assert.deepEqual(manifest.join, JOIN);
    assert.deepEqual(await stored(at('good')), ['app.tar', '10-app.yaml']);
  });

  test('offline bundle with a token is readable only by its owner, and the same input yields the same bytes', async () => {
    assert.equal((await stat(at('good'))).mode & 0o777, 0o600);
    await createOffline({ ...options, bundle: at('again') });
    assert.deepEqual(await readFile(at('again')), await readFile(at('good')));
    await createOffline({ ...options, bundle: at('public'), join: undefined });
    assert.equal((await stat(at('public'))).mode & 0o777, 0o644);
  });

  test('offline bundle is rejected when it is changed or signed by an untrusted key', async () => {
    const other = generateKeyPairSync('ed25519').publicKey;
    assert.equal(await stored(at('good'), [other]), 'manifest.json.sig: no trusted key has signed the manifest');
    assert.match(String(await stored(at('good'), [])), /^no key is trusted; give --key FILE/);
    const content = await readFile(at('good'));
    content.write('9', content.indexOf('"version": "1.2.3"') + 12);
    await writeFile(at('changed'), content);
    assert.equal(await stored(at('changed')), 'manifest.json.sig: no trusted key has signed the manifest');
  });

  test('offline bundle is rejected when it is truncated or damaged at any member', async () => {
    const content = await readFile(at('good'));
    for (const [marker, expected] of [
      ['program', /hyperedge-linux-x64: the file does not have its announced SHA-256/],
      ['a: 1\n', /10-app\.yaml: the file does not have its announced SHA-256/],
    ] as const) {
      const damaged = Buffer.from(content);
      damaged.write('#', damaged.indexOf(marker));
      await writeFile(at('damaged'), damaged);
      assert.match(String(await stored(at('damaged'))), expected);
    }
    await writeFile(at('short'), content);
    for (const size of [300_000, 5_000, 700, 100]) {
      await truncate(at('short'), size);
      assert.equal(typeof (await stored(at('short'))), 'string', `${size} bytes`);
    }
    const missing = await tar(
      offlineText({ version: '1.2.3', files: [{ name: 'x', role: 'image', size: 1, sha256: DIGEST }] }),
    );
    assert.equal(await stored(missing), 'the file ends before x');
  });

  test('offline bundle is rejected when the name or size of a member differs from the manifest', async () => {
    const file = { name: 'a.yaml', role: 'manifest', size: 1, sha256: sha256Hex('x') } as const;
    const text = offlineText({ version: '1.2.3', files: [file] });
    assert.match(String(await stored(await tar(text, ['../../etc/passwd', 'x']))), /is not the next one/);
    assert.match(
      String(await stored(await tar(text, ['a.yaml', 'x'], ['b.yaml', 'x']))),
      /"b\.yaml" is not the next one/,
    );
    assert.match(String(await stored(await tar(text, ['a.yaml', 'xx']))), /has 2 bytes instead of 1/);
    assert.deepEqual(await stored(await tar(text, ['a.yaml', 'x'])), ['a.yaml']);
  });

  test('rejects path names, wrong sizes, unknown roles and unknown architectures in a signed manifest', () => {
    const base = { name: 'a', role: 'image', size: 1, sha256: DIGEST } as const;
    const problem = (file: Record<string, unknown>): unknown =>
      parseOfflineManifest(offlineText({ version: '1.2.3', files: [{ ...base, ...file }] }));
    for (const name of ['../a', 'a/b', '.hidden', '', '-x', 'a\n', 'x'.repeat(200)])
      assert.match(String(problem({ name })), /^files\[0\]\.name: /, name);
    for (const size of [0, -1, 1.5, 2 ** 60]) assert.match(String(problem({ size })), /^files\[0\]\.size: /);
    assert.match(String(problem({ role: 'script' })), /^files\[0\]\.role: /);
    assert.match(String(problem({ role: 'executable' })), /^files\[0\]\.architecture: must be one of x64, arm64$/);
    assert.match(String(problem({ role: 'manifest', name: 'a.sh' })), /must end in \.yaml/);
    assert.match(String(problem({ sha256: 'x' })), /^files\[0\]\.sha256: /);
    assert.equal(
      parseOfflineManifest(offlineText({ version: '1.2.3', files: [base, base] })),
      'files[1].name: a is given twice',
    );
    assert.match(
      String(parseOfflineManifest(offlineText({ version: '1.2.3', files: [base], join: { ...JOIN, token: '' } }))),
      /^join\.token: /,
    );
  });

  test('offline bundle creation rejects foreign executables, packages without architecture, and duplicate file names', async () => {
    const attempt = (changed: Partial<OfflineOptions>): Promise<unknown> =>
      createOffline({ ...options, bundle: at('none'), ...changed });
    await assert.rejects(attempt({ executables: new Map([['x64', at('arm64')]]) }), /is not an executable for x64/);
    await assert.rejects(attempt({ packages: [at('app.tar')] }), /the file name must end in _amd64/);
    await assert.rejects(attempt({ images: [at('app.tar'), at('app.tar')] }), /has a file app\.tar already; rename it/);
    await assert.rejects(attempt({ images: [at('missing')] }), /cannot read .*missing/);
    assert.ok(!(await readdir(work)).includes('none'));
  });

  test('reports version and architectures of an offline bundle, and whether it contains a given executable', async () => {
    assert.ok(await isOfflineBundle(at('good')));
    const trust = { key: at('key.pub'), root: work };
    const own = process.arch === 'arm64' ? 'arm64' : 'x64';
    assert.deepEqual(await compareBundle(at('good'), at(own), trust), {
      version: '1.2.3',
      architectures: ['x64', 'arm64'],
      isSame: true,
    });
    assert.equal((await compareBundle(at('good'), at('app.tar'), trust)).isSame, false);
    await assert.rejects(
      compareBundle(at('app.tar'), at(own), trust),
      /app\.tar: the file is truncated; copy it again$/,
    );
  });
});
