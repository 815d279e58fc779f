/**
 * Limits the extended headers of an archive (pax, GNU long names), each of which tar-stream reads into memory as a
 * whole. Also captures the attributes in them as bytes, because tar-stream decodes attributes as text.
 */
import type { Extract, Header } from 'tar-stream';

export interface HeaderLimits {
  /** Limit for one extended header in bytes. */
  readonly one: number;
  /**
   * Limit for all extended headers of an archive in bytes. A global header counts again for each header that it is
   * copied into.
   */
  readonly all: number;
}

/** Internals of tar-stream, which has no hook and no limit except 4 MiB for one header. */
interface Inner {
  readonly _header: { readonly type: string } | null;
  readonly _pax: object | null;
  _decodeLongHeader(bytes: Buffer): void;
}

const innerOf = (parser: Extract): Inner => parser as unknown as Inner;

const ATTRIBUTE = 'SCHILY.xattr.';
const SPACE = 0x20;
/** Attributes by the `pax` object of an entry's header. */
const captured = new WeakMap<object, ReadonlyMap<string, Buffer>>();

/** Applies the limits to a parser. A header that exceeds a limit ends the archive with an error. */
export function boundExtendedHeaders(parser: Extract, limits: HeaderLimits): void {
  const inner = innerOf(parser);
  const decode = inner._decodeLongHeader.bind(parser);
  let global = 0;
  let total = 0;
  inner._decodeLongHeader = (bytes) => {
    const type = inner._header?.type;
    total += bytes.length + (type === 'pax-header' ? global : 0);
    if (bytes.length > limits.one) throw new Error(`an extended header has more than ${limits.one} bytes`);
    if (total > limits.all) throw new Error(`the extended headers have more than ${limits.all} bytes`);
    if (type === 'pax-global-header') global = bytes.length;
    decode(bytes);
  };
}

/**
 * Attributes that an archive may set: file capabilities and user attributes, except those that overlayfs interprets.
 */
const isRestored = (name: string): boolean =>
  name === 'security.capability' || (/^user\../.test(name) && !name.startsWith('user.overlay.'));

/** Captures the attributes of entries for `attributesOf`. */
export function captureAttributes(parser: Extract): void {
  const inner = innerOf(parser);
  const decode = inner._decodeLongHeader.bind(parser);
  inner._decodeLongHeader = (bytes) => {
    decode(bytes);
    if (inner._header?.type === 'pax-header' && inner._pax !== null) captured.set(inner._pax, attributesIn(bytes));
  };
}

export function attributesOf({ pax }: Header): ReadonlyMap<string, Buffer> {
  return (pax === null || pax === undefined ? undefined : captured.get(pax)) ?? new Map();
}

function attributesIn(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(SPACE, at);
    const length = space < 0 ? 0 : Number(bytes.toString('latin1', at, space));
    if (!Number.isInteger(length) || length < 5 || at + length > bytes.length) break;
    const record = bytes.subarray(space + 1, at + length - 1);
    at += length;
    const equals = record.indexOf('=');
    const key = record.toString('utf8', 0, Math.max(0, equals));
    const name = key.slice(ATTRIBUTE.length);
    if (key.startsWith(ATTRIBUTE) && isRestored(name)) found.set(name, Buffer.from(record.subarray(equals + 1)));
  }
  return found;
}
