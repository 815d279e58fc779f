/**
 * The preset zlib dictionary of SPDY/3 header blocks (SPDY protocol draft 3, section 2.6.10.1): header words, each
 * preceded by its 32-bit length, then common values without separators. Peers put its Adler-32 into the zlib header as
 * dictionary id.
 */
const WORDS = [
  ...'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow'.split(
    ' ',
  ),
  ...'authorization cache-control connection content-base content-encoding content-language content-length'.split(' '),
  ...'content-location content-md5 content-range content-type date etag expect expires from host if-match'.split(' '),
  ...'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma'.split(
    ' ',
  ),
  ...'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
  ...'user-agent vary via warning www-authenticate method get status'.split(' '),
  '200 OK',
  ...'version HTTP/1.1 url public set-cookie keep-alive origin'.split(' '),
];

const STATUS_CODES = `
  100 101 201 202 205 206 300 302 303 304 305 306 307 402 405 406 407 408 409 410 411 412 413 414 415 416 417 502 504 505`;

const TAIL =
  STATUS_CODES.replaceAll(/\s/g, '') +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found' +
  '500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,' +
  'publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

export const SPDY_DICTIONARY: Buffer = Buffer.concat([
  ...WORDS.flatMap((word) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(word.length);
    return [length, Buffer.from(word, 'latin1')];
  }),
  Buffer.from(TAIL, 'latin1'),
]);

/** Adler-32 of the dictionary (RFC 1950, FDICT). */
export const SPDY_DICTIONARY_ID = 0xe3c6a7c2;
