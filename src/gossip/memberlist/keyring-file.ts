/**
 * The file with the keyring, in the format of Serf's `-keyring-file`: a JSON array of keys in base64. The first key
 * encrypts.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import { secretFileProblem } from '../../base/files/secret-file.ts';
import type { KeyStore } from '../membership/port.ts';
import { Keyring } from './keyring.ts';

const KEY_BYTES = 32;
const MAX_FILE_BYTES = 16 * 1024;

export interface OpenedKeyring {
  readonly keyring: Keyring;
  readonly store: KeyStore;
}

/** Content of a keyring file with one new key. */
export function newKeyringText(): string {
  return textOf([randomBytes(KEY_BYTES)]);
}

/**
 * Opens the keyring; undefined if the file does not exist. Throws CodedError 'bad-keyring' with the file and a fix if
 * the file is invalid or other users have access to it.
 */
export async function openKeyring(path: string): Promise<OpenedKeyring | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new CodedError('bad-keyring', `cannot read ${path}: ${error.message}`, { cause: error });
  });
  if (found === undefined) return undefined;
  const problem = secretFileProblem(path, found, process.geteuid?.() ?? 0);
  if (problem !== undefined) throw new CodedError('bad-keyring', problem);
  if (found.size > MAX_FILE_BYTES) throw new CodedError('bad-keyring', `${path} is too large for a keyring`);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CodedError('bad-keyring', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
  const keyring = keyringOf(text, path);
  return { keyring, store: keyStore(path, keyring) };
}

/** Creates the file with a new key. Throws CodedError 'unwritable'. */
export async function createKeyring(path: string): Promise<void> {
  await write(path, newKeyringText());
}

function keyringOf(text: string, path: string): Keyring {
  const fix = 'the file must contain a JSON list of keys in base64, for example from hyperedge gossip keygen';
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new CodedError('bad-keyring', `${path} is not JSON; ${fix}`, { cause: error });
  }
  if (!Array.isArray(list) || !list.every((each) => typeof each === 'string'))
    throw new CodedError('bad-keyring', `${path} is not a list of strings; ${fix}`);
  const keys = list.map((each, index) => {
    const key = Buffer.from(each, 'base64');
    if (key.toString('base64').replaceAll('=', '') !== each.replaceAll('=', ''))
      throw new CodedError('bad-keyring', `${path}: entry ${index + 1} is not base64; ${fix}`);
    return key;
  });
  try {
    return new Keyring(keys);
  } catch (error) {
    throw new CodedError('bad-keyring', `${path}: ${messageOf(error)}; ${fix}`, { cause: error });
  }
}

/**
 * Changes the keys one change at a time. A change that cannot be written is reverted, so that the file always matches
 * the keys in use.
 */
function keyStore(path: string, keyring: Keyring): KeyStore {
  let last: Promise<void> = Promise.resolve();
  const change = (apply: () => void): Promise<void> => {
    const next = last.then(async () => {
      const before = keyring.keys();
      apply();
      const text = textOf(keyring.keys());
      if (text === textOf(before)) return;
      try {
        await write(path, text);
      } catch (error) {
        keyring.restore(before);
        throw error;
      }
    });
    last = next.catch(ignore('the caller of the change gets its error'));
    return next;
  };
  return {
    keys: () => keyring.keys(),
    install: (key) => change(() => keyring.install(key)),
    use: (key) => change(() => keyring.use(key)),
    remove: (key) => change(() => keyring.remove(key)),
  };
}

async function write(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const temporary = `${path}.new`;
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.chmod(0o600);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function textOf(keys: readonly Uint8Array[]): string {
  return `${JSON.stringify(
    keys.map((key) => Buffer.from(key).toString('base64')),
    undefined,
    2,
  )}\n`;
}
