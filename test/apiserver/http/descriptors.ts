/** Protobuf descriptors of Kubernetes messages, extracted from kubectl, and the protobuf compiler that uses them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';

const GZIP = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00]);
const GZIP_HEADER = 10;
const MAX_DESCRIPTOR = 1 << 20;

export interface Protoc {
  /** Returns text format. Throws if the bytes are not a message of the type. */
  decode(type: string, bytes: Uint8Array): string;
  encode(type: string, text: string): Buffer;
  knows(type: string): boolean;
}

/** Undefined if protoc or kubectl is not installed. */
export function protocOf(directory: string): Protoc | undefined {
  const kubectl = programOf('kubectl');
  if (kubectl === undefined || programOf('protoc') === undefined) return undefined;
  const files = new Map<string, Buffer>();
  const program = readFileSync(realpathSync(kubectl));
  for (let at = program.indexOf(GZIP); at >= 0; at = program.indexOf(GZIP, at + GZIP.length)) {
    try {
      const bytes = inflateRawSync(program.subarray(at + GZIP_HEADER, at + MAX_DESCRIPTOR));
      const name = new Reader(bytes);
      if (name.field() === 1) files.set(name.string(), bytes);
    } catch {
      // These bytes are other compressed data of the program.
    }
  }
  const set = new Writer();
  // The options of gogo.proto concern only generated Go code, so an empty file is sufficient.
  set.message(1, new Writer().string(1, 'github.com/gogo/protobuf/gogoproto/gogo.proto').finish());
  for (const [name, bytes] of files) if (name.includes('k8s.io/')) set.message(1, bytes);
  const path = join(directory, 'descriptors.bin');
  writeFileSync(path, set.finish());
  const run = (...args: string[]) => [`--descriptor_set_in=${path}`, ...args];
  const call = (input: Uint8Array, flag: string, type: string): Buffer =>
    execFileSync('protoc', run(`--${flag}=${type}`), { input, maxBuffer: 1 << 26, stdio: ['pipe', 'pipe', 'pipe'] });
  return {
    decode: (type, bytes) => call(bytes, 'decode', type).toString('utf8'),
    encode: (type, text) => {
      const args = [`--descriptor_set_in=${path}`, '--deterministic_output', `--encode=${type}`];
      return execFileSync('protoc', args, { input: text, maxBuffer: 1 << 26 });
    },
    knows: (type) => spawnSync('protoc', run(`--decode=${type}`), { input: '' }).status === 0,
  };
}

function programOf(name: string): string | undefined {
  return ['/usr/bin', '/usr/local/bin', '/bin'].map((each) => join(each, name)).find((each) => existsSync(each));
}
