/** Bounds on what one archive may have in extended headers (pax, GNU long names), which tar-stream decodes at once. */
import type { Extract } from 'tar-stream';

export interface HeaderLimits {
  /** Bytes of one extended header. */
  readonly one: number;
  /** Bytes of all of them; a global header counts again with each header that it is copied into. */
  readonly all: number;
}

/** tar-stream has no hook and no limit of its own but 4 MiB for one. */
interface Inner {
  readonly _header: { readonly type: string } | null;
  _decodeLongHeader(bytes: Buffer): void;
}

/** Throws in the parser, which ends the archive with the error. */
export function boundExtendedHeaders(parser: Extract, limits: HeaderLimits): void {
  const inner = parser as unknown as Inner;
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
