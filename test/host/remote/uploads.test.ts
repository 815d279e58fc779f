import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { CodedError } from '../../../src/base/errors.ts';
import { RemoteUploads, type UploadPlaces } from '../../../src/host/remote/uploads.ts';

let directory: string;
let space: { free: number; total: number };
let importFile: UploadPlaces['importFile'];
const { signal } = new AbortController();

const newUploads = (): RemoteUploads =>
  new RemoteUploads({
    directory,
    maxBytes: 1000,
    space: async () => space,
    importFile: (...parameters) => importFile(...parameters),
  });
const imageOf = (body: Readable, bytes?: number) =>
  ({ kind: 'image', body, bytes, name: undefined, force: false }) as const;
const failsWith = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CodedError && error.code === code, String(error));
  assert.match(error.message, message);
  return true;
};
const isEmpty = async (): Promise<void> => assert.deepEqual(await readdir(directory), []);

beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'he-uploads-')), 'uploads');
  space = { free: 100_000, total: 100_000 };
  importFile = async () => '[]';
});
afterEach(() => rm(join(directory, '..'), { recursive: true, force: true }));

test('imports a private copy of the uploaded body and removes the copy', async () => {
  const seen: unknown[] = [];
  importFile = async (file, { kind, name }) => {
    const { mode } = await stat(file);
    seen.push(kind, name, await readFile(file, 'utf8'), mode & 0o777);
    return '[{"id":"sha256:1","names":["app:1"]}]';
  };
  let isReceived = false;
  const result = await newUploads().import(
    {
      kind: 'image',
      body: Readable.from([Buffer.from('arch'), Buffer.from('ive')]),
      bytes: 7,
      name: 'app:1',
      force: false,
    },
    signal,
    () => {
      isReceived = true;
    },
  );
  assert.deepEqual(result, { images: [{ id: 'sha256:1', names: ['app:1'] }] });
  assert.deepEqual(seen, ['image', 'app:1', 'archive', 0o600]);
  assert.equal(isReceived, true);
  await isEmpty();
});

test('the error of a failed import omits the path of the temporary file', async () => {
  importFile = async (file) => {
    throw new Error(`${file}: no image found for linux/amd64`);
  };
  await assert.rejects(
    newUploads().import(imageOf(Readable.from([Buffer.from('x')])), signal, () => undefined),
    failsWith('rejected', /^archive: no image found for linux\/amd64$/),
  );
  await isEmpty();
});

test('refuses archives that are too large or exceed the free space, before and while they are received', async () => {
  const uploads = newUploads();
  const body = (): Readable => Readable.from([600, 600, 600].map((size) => Buffer.alloc(size)));
  await assert.rejects(
    uploads.import(imageOf(body(), 1200), signal, () => undefined),
    failsWith('too-large', /exceeds 1000/),
  );
  const unannounced = body();
  await assert.rejects(
    uploads.import(imageOf(unannounced), signal, () => undefined),
    failsWith('too-large', /exceeds 1000/),
  );
  assert.equal(unannounced.destroyed, false, 'the client can read the reason');
  space = { free: 6_000, total: 100_000 };
  await assert.rejects(
    uploads.import(imageOf(body(), 900), signal, () => undefined),
    failsWith('no-space', /space for an archive of 500/),
  );
  assert.deepEqual(await uploads.limits(), { isBusy: false, maxBytes: 1000, freeBytes: 500 });
  await isEmpty();
});

test('refuses uploads with truncated or empty bodies', async () => {
  const uploads = newUploads();
  await assert.rejects(
    uploads.import(imageOf(Readable.from([Buffer.from('x')]), 2), signal, () => undefined),
    failsWith('rejected', /1 of 2 bytes/),
  );
  await assert.rejects(
    uploads.import(imageOf(Readable.from([])), signal, () => undefined),
    failsWith('rejected', /empty/),
  );
  await isEmpty();
});

test('accepts one upload at a time, and removes the file of an aborted upload', async () => {
  const uploads = newUploads();
  const body = new PassThrough();
  body.write('first part');
  const client = new AbortController();
  const first = assert.rejects(uploads.import(imageOf(body), client.signal, () => undefined));
  while (!existsSync(directory) || (await readdir(directory)).length === 0) await turn();
  await assert.rejects(
    uploads.import(imageOf(Readable.from([Buffer.from('x')])), signal, () => undefined),
    failsWith('busy', /another archive/),
  );
  assert.equal((await uploads.limits()).isBusy, true);
  client.abort();
  await first;
  await isEmpty();
  await uploads.import(imageOf(Readable.from([Buffer.from('x')])), signal, () => undefined);
});

test('ends an import when the client disconnects or the host stops', async () => {
  for (const ends of ['client', 'host'] as const) {
    const uploads = newUploads();
    const client = new AbortController();
    importFile = (_file, _upload, running) =>
      new Promise((_resolve, reject) => {
        running.addEventListener('abort', () => reject(new Error('import ended')));
      });
    const received = Promise.withResolvers<void>();
    const work = assert.rejects(
      uploads.import(imageOf(Readable.from([Buffer.from('x')])), client.signal, () => received.resolve()),
      /import ended/,
    );
    await received.promise;
    if (ends === 'client') client.abort();
    else await uploads.stop();
    await work;
    await isEmpty();
  }
});

test('removes files of an earlier process before the first upload', async () => {
  await mkdir(directory);
  await writeFile(join(directory, 'upload-0123456789abcdef'), 'rest');
  await newUploads().limits();
  await isEmpty();
});
