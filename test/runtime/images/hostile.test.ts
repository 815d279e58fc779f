/** Small layers with a high cost, damaged layers, and registries whose responses are slow to parse. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { silentLog as log } from '../../../src/base/log.ts';
import { trees } from '../../../src/runtime/directory-removal/index.ts';
import { unpackLayer } from '../../../src/runtime/images/layers/unpack.ts';
import { parseReference } from '../../../src/runtime/images/reference.ts';
import { createRegistryClient } from '../../../src/runtime/images/registry/registry.ts';
import { type TarEntry, tarBytes } from '../../conformance/busybox-image.ts';
import { generator } from '../../support/random.ts';
import { directory, file, link } from './archives.ts';

let scratch: string;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'layers-'));
});
after(() => rm(scratch, { recursive: true, force: true }));

let layers = 0;
const LIMITS = {
  entries: 1000,
  nameBytes: 10_000,
  programs: 5,
  replaced: 2_000,
  archiveBytes: 1 << 22,
  headers: { one: 10_000, all: 100_000 },
};

async function unpack(bytes: Buffer, limits = LIMITS): Promise<string> {
  layers += 1;
  const root = join(scratch, 'roots', String(layers));
  await mkdir(root, { recursive: true });
  await unpackLayer(Readable.from([bytes]), { root, trees, log }, limits);
  return root;
}

test('limits the number of entries, name bytes, attributes and special files of an image layer', async () => {
  const many = (count: number, make: (i: number) => TarEntry): TarEntry[] =>
    Array.from({ length: count }, (_, i) => make(i));
  const cases: readonly (readonly [readonly TarEntry[], RegExp])[] = [
    [many(1001, (i) => file(`f${i}`, '')), /more than 1000 entries/],
    [many(200, (i) => file(`${'n'.repeat(90)}${i}`, '')), /names have more than 10000 bytes/],
    [many(6, (i) => ({ header: { name: `p${i}`, type: 'fifo' } })), /more than 5 attributes, devices and pipes/],
    [
      many(6, (i) => file(`a${i}`, '', { pax: { 'SCHILY.xattr.user.x': 'y' } })),
      /more than 5 attributes, devices and pipes/,
    ],
    [
      [
        ...many(200, (i) => file(`f${i}`, '')),
        ...many(40, (i) => (i % 2 === 0 ? directory(`d${i}/`) : file(`d${i - 1}`, ''))),
      ],
      /too many directories are replaced/,
    ],
  ];
  for (const [entries, message] of cases) await assert.rejects(unpack(await tarBytes(entries)), message);
  await unpack(await tarBytes([...many(50, (i) => file(`f${i}`, 'x')), directory('d/'), file('d', 'x')]));
});

test('an image import fails before it uses all inodes of the file system', {
  skip: process.getuid?.() !== 0,
}, async (t) => {
  const root = join(scratch, 'roots', 'few-inodes');
  await mkdir(root, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=6500', 'few-inodes', root]);
  t.after(async () => {
    execFileSync('umount', [root]);
    await rm(root, { recursive: true });
  });
  const entries = Array.from({ length: 6_000 }, (_, i) => file(`f${i}`, ''));
  const limits = { ...LIMITS, entries: 10_000, nameBytes: 1_000_000, archiveBytes: 1 << 24 };
  const unpacked = unpackLayer(Readable.from([await tarBytes(entries)]), { root, trees, log }, limits);
  await assert.rejects(unpacked, /no space left on device/);
  assert.ok((await statfs(root)).ffree > 2_000, 'free inodes');
});

/** Blocks of an archive member of any type. */
function member(name: string, type: string, body: Buffer | string): Buffer {
  const content = Buffer.from(body);
  const blocks = Buffer.alloc(512 + Math.ceil(content.length / 512) * 512);
  blocks.write(name, 0);
  blocks.write('0000644\0', 100);
  blocks.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  blocks.write('00000000000\0', 136);
  blocks.write(type, 156);
  blocks.write('ustar\x0000', 257, 'latin1');
  content.copy(blocks, 512);
  return blocks;
}

function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  for (let length = rest.length; ; length += 1) {
    const record = `${length}${rest}`;
    if (record.length === length) return record;
  }
}

const END = Buffer.alloc(1024);

test('limits extended tar headers and skipped entries of an image layer', async () => {
  const times = (count: number, bytes: Buffer): Buffer[] => Array.from({ length: count }, () => bytes);
  const small = Buffer.concat([member('p', 'x', paxRecord('comment', 'x')), member('f', '0', '')]);
  const large = member('p', 'x', paxRecord('comment', 'x'.repeat(9_000)));
  const cases: readonly (readonly [Buffer[], RegExp])[] = [
    [
      [member('g', 'g', paxRecord('comment', 'x'.repeat(9_000))), ...times(20, small)],
      /extended headers have more than 100000/,
    ],
    [times(20, large), /extended headers have more than 100000 bytes/],
    [[member('p', 'x', paxRecord('comment', 'x'.repeat(11_000)))], /an extended header has more than 10000 bytes/],
    [[member('l', 'L', 'n'.repeat(11_000))], /an extended header has more than 10000 bytes/],
    [times(6, member('s', 'Z', Buffer.alloc(1 << 20))), /the archive has more than 4194304 bytes/],
    [times(6, member('d/', '5', Buffer.alloc(1 << 20))), /the archive has more than 4194304 bytes|unsupported|Invalid/],
  ];
  for (const [blocks, message] of cases) {
    const bytes = signed(Buffer.concat([...blocks, END]));
    const pieces = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, index) =>
      bytes.subarray(index * 65_536, (index + 1) * 65_536),
    );
    layers += 1;
    const root = join(scratch, 'roots', String(layers));
    await mkdir(root, { recursive: true });
    await assert.rejects(unpackLayer(Readable.from(pieces), { root, trees, log }, LIMITS), message);
  }
  const whole = Buffer.concat([member('g', 'g', paxRecord('comment', 'x'.repeat(500))), ...times(5, small), END]);
  await unpack(signed(whole));
});

test('an image import fails for a tar entry with an invalid size', { timeout: 5_000 }, async () => {
  for (const first of [0xcc, 0x81, 0xfe]) {
    const bytes = await tarBytes([file('a', 'x')]);
    bytes[124] = first;
    await assert.rejects(unpack(signed(bytes)), /"a" has no valid size/);
  }
});

/** Corrects the checksum of each damaged header, so that the damage is parsed. */
function signed(bytes: Buffer): Buffer {
  for (let at = 0; at + 512 <= bytes.length; at += 512) {
    if (bytes.toString('latin1', at + 257, at + 262) !== 'ustar') continue;
    bytes.fill(0x20, at + 148, at + 156);
    const sum = bytes.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148, 'latin1');
  }
  return bytes;
}

test('an import of a damaged image layer never writes outside of the layer', { timeout: 60_000 }, async () => {
  const next = generator(20_2614);
  const below = (most: number): number => Math.floor(next() * most);
  const whole = await tarBytes([
    directory('d/'),
    file('d/f', 'text', { pax: { 'SCHILY.xattr.user.a': 'b', comment: 'c' } }),
    file(`long/${'n'.repeat(150)}`, 'x'.repeat(700)),
    link('l', '../../../..'),
    link('h', 'd/f', 'link'),
    file('d/.wh.gone', ''),
    file('o/.wh..wh..opq', ''),
    file('d/f', 'again'),
  ]);
  let refused = 0;
  for (let i = 0; i < 160; i += 1) {
    const bytes = Buffer.from(whole);
    for (let n = below(4); n >= 0; n -= 1) {
      // Damages a header: the size, the type, the name, or any byte.
      const header = below(bytes.length / 512) * 512;
      const at = header + ([124, 156, 0, 157, 345, below(512)][below(6)] ?? 0) + below(4);
      bytes[at] = [0x80, 0xff, 0x2f, 0x2e, 0x53, 0x78, 0x67, below(256)][below(8)] ?? 0;
    }
    await unpack(signed(bytes)).catch((error: Error & { code?: string }) => {
      assert.equal(error.code, 'image-pull', error.stack);
      refused += 1;
    });
  }
  assert.ok(refused > 30, `${refused} of 160 refused`);
  assert.deepEqual(await readdir(scratch), ['roots']);
});

test('fails a pull in time if registry responses are slow to parse or redirect to invalid addresses', async () => {
  const answers: Readonly<Record<string, (response: ServerResponse, request: IncomingMessage) => void>> = {
    challenge: (response) => response.writeHead(401, { 'www-authenticate': `Bearer ${'a'.repeat(12_000)}` }).end(),
    quotes: (response) => response.writeHead(401, { 'www-authenticate': `Bearer ${'a="'.repeat(4_000)}` }).end(),
    realm: (response) => response.writeHead(401, { 'www-authenticate': 'Bearer realm="file:///etc/shadow"' }).end(),
    location: (response) => response.writeHead(302, { location: 'http://[' }).end(),
    loop: (response, request) => response.writeHead(302, { location: request.url }).end(),
    gopher: (response) => response.writeHead(307, { location: 'gopher://127.0.0.1/' }).end(),
    token: (response, request) => {
      if (request.url?.startsWith('/token?') === true) response.end(JSON.stringify({ token: 'a\r\nx: y' }));
      else response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${request.headers.host}/token"` }).end();
    },
    shorter: (response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{}');
      setTimeout(() => response.destroy(), 20);
    },
    nothing: (response) => response.destroy(),
  };
  let name = '';
  const server = createServer((request, response) => answers[name]?.(response, request));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (name of Object.keys(answers)) {
    const reference = parseReference(`${host}/a/b:1`);
    const client = createRegistryClient(reference, host, undefined, { insecureRegistries: [], mirrors: {} });
    const began = process.cpuUsage();
    await assert.rejects(client.manifest('1'), (error: Error & { code?: string }) => {
      assert.match(error.code ?? '', /^image-/, `${name}: ${error.stack}`);
      return true;
    });
    const spent = process.cpuUsage(began).user / 1000;
    assert.ok(spent < 150, `${name}: ${spent} ms`);
    await client.close();
  }
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});
