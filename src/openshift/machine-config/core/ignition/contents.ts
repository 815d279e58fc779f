/**
 * Decodes the contents of files: `data:` URLs (RFC 2397) with plain text or base64, optionally compressed with gzip.
 * All sizes are limited.
 */
import { type FieldError, fieldError, OMITTED } from '../../../../api/meta/field-error.ts';
import type { IgnitionContents, IgnitionFile, Inflate } from './types.ts';

/** Maximum length of the source of a file. It exceeds the size of every object in the API. */
export const MAX_SOURCE_BYTES = 4 * 1024 * 1024;
/** Maximum size of a file after decompression. */
export const MAX_FILE_BYTES = 8 * 1024 * 1024;
/** Maximum size of all files of a config together, after decompression. */
export const MAX_CONFIG_BYTES = 64 * 1024 * 1024;

const HEADER = /^data:([^,;]{0,255}(?:;[^,;=]{1,255}=[^,;]{0,255}){0,16}?)(;base64)?,/;
const BASE64 = /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/;

export type Decoded =
  | { readonly bytes: Uint8Array }
  /** `refused`: whether the source is valid Ignition that hosts do not support. */
  | { readonly error: FieldError; readonly refused: boolean };

const EMPTY = new Uint8Array();

/**
 * Decodes the contents of a file.
 *
 * @param path Field path of the contents, for errors.
 */
export function decodeContents(contents: IgnitionContents | undefined, path: string, inflate: Inflate): Decoded {
  const source = contents?.source ?? '';
  const at = `${path}.source`;
  const invalid = (detail: string): Decoded => ({ error: fieldError.invalid(at, OMITTED, detail), refused: false });
  if (source.length > MAX_SOURCE_BYTES) {
    return invalid(`a URL of ${source.length} bytes; must have at most ${MAX_SOURCE_BYTES}, store the file elsewhere`);
  }
  const compression = contents?.compression ?? '';
  if (compression !== '' && compression !== 'gzip') {
    const error = fieldError.notSupported(`${path}.compression`, compression, ['', 'gzip']);
    return { error, refused: false };
  }
  if (source === '') return { bytes: EMPTY };
  if (!source.startsWith('data:')) {
    const scheme = source.slice(0, 64).split(':')[0];
    const detail = `remote source ${JSON.stringify(`${scheme}:`)}; write the contents as a data: URL`;
    return { error: fieldError.forbidden(at, detail), refused: true };
  }
  const header = HEADER.exec(source);
  if (header === null) return invalid('must be a data: URL (RFC 2397), such as data:,text or data:;base64,dGV4dA==');
  const data = source.slice(header[0].length);
  const bytes = header[2] === undefined ? percentDecoded(data) : base64Decoded(data);
  if (bytes === undefined) return invalid(header[2] === undefined ? 'has an invalid % escape' : 'is not base64');
  if (compression === '') return { bytes };
  try {
    return { bytes: inflate(bytes, MAX_FILE_BYTES) };
  } catch {
    return invalid(`is not gzip, or has more than ${MAX_FILE_BYTES} bytes when it is decompressed`);
  }
}

/** Content of a file as text. The config must be valid. */
export function fileText(file: IgnitionFile, inflate: Inflate): string {
  const decoded = decodeContents(file.contents, file.path, inflate);
  return 'bytes' in decoded ? new TextDecoder().decode(decoded.bytes) : '';
}

function percentDecoded(text: string): Uint8Array | undefined {
  const raw = new TextEncoder().encode(text);
  if (!text.includes('%')) return raw;
  const bytes = new Uint8Array(raw.length);
  let length = 0;
  for (let index = 0; index < raw.length; index += 1) {
    const byte = raw[index] ?? 0;
    if (byte !== 0x25) bytes[length] = byte;
    else {
      const [high, low] = [hexDigit(raw[index + 1]), hexDigit(raw[index + 2])];
      if (high === undefined || low === undefined) return undefined;
      bytes[length] = high * 16 + low;
      index += 2;
    }
    length += 1;
  }
  return bytes.subarray(0, length);
}

function hexDigit(code: number | undefined): number | undefined {
  if (code === undefined) return undefined;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : undefined;
}

function base64Decoded(text: string): Uint8Array | undefined {
  const escaped = text.includes('%') ? percentDecoded(text) : undefined;
  if (text.includes('%') && escaped === undefined) return undefined;
  const plain = (escaped === undefined ? text : new TextDecoder().decode(escaped)).replaceAll(/[\r\n]/g, '');
  if (!BASE64.test(plain) || plain.length % 4 !== 0) return undefined;
  try {
    const binary = atob(plain);
    const bytes = new Uint8Array(binary.length);
    for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
    return bytes;
  } catch {
    return undefined;
  }
}
